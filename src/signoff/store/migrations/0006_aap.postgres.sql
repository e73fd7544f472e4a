-- As for SQLite.

create table {s}aap_instances (
  nr bigint generated always as identity primary key,
  id text collate "C" not null unique,
  provisioner text collate "C" not null,
  key text collate "C" not null,
  revoked_at bigint,
  body text not null
);
create unique index aap_instances_key on {s}aap_instances (provisioner, key) where key <> '';
create index aap_instances_revoked on {s}aap_instances (revoked_at) where revoked_at is not null;

create table {s}aap_requests (
  nr bigint generated always as identity primary key,
  id text collate "C" not null unique,
  instance text collate "C" not null,
  key text collate "C" not null,
  stage text not null,
  deadline bigint not null,
  touched_at bigint not null,
  body text not null
);
create unique index aap_requests_key on {s}aap_requests (instance, key);
create index aap_requests_going on {s}aap_requests (instance, nr) where stage <> 'over';
create index aap_requests_due on {s}aap_requests (deadline) where stage = 'open';
create index aap_requests_touched on {s}aap_requests (touched_at) where stage <> 'open';
