-- The Agent Approval Protocol: requests of agents elsewhere, also those that policy alone decided, and the instances
-- that sent them. Their credentials are access keys.

create table aap_instances (
  nr integer primary key,
  id text not null unique,
  provisioner text not null,
  key text not null,
  revoked_at integer,
  body text not null
);
create unique index aap_instances_key on aap_instances (provisioner, key) where key <> '';
create index aap_instances_revoked on aap_instances (revoked_at) where revoked_at is not null;

create table aap_requests (
  nr integer primary key,
  id text not null unique,
  instance text not null,
  key text not null,
  stage text not null,
  deadline integer not null,
  touched_at integer not null,
  body text not null
);
create unique index aap_requests_key on aap_requests (instance, key);
create index aap_requests_going on aap_requests (instance, nr) where stage <> 'over';
create index aap_requests_due on aap_requests (deadline) where stage = 'open';
create index aap_requests_touched on aap_requests (touched_at) where stage <> 'open';
