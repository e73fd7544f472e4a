-- As for SQLite.

create table {s}access_keys (
  nr bigint generated always as identity primary key,
  id text collate "C" not null unique,
  digest text collate "C" not null unique,
  kind text not null,
  holder text collate "C" not null,
  expires_at bigint,
  body text not null
);
create index access_keys_holder on {s}access_keys (holder, nr);
create index access_keys_expiry on {s}access_keys (expires_at) where expires_at is not null;

create table {s}comments (
  nr bigint generated always as identity primary key,
  request text collate "C" not null,
  body text not null
);
create index comments_request on {s}comments (request, nr);

create table {s}replies (
  holder text collate "C" not null,
  name text collate "C" not null,
  asked text not null,
  status integer not null,
  body text not null,
  at bigint not null,
  primary key (holder, name)
);
create index replies_at on {s}replies (at);
