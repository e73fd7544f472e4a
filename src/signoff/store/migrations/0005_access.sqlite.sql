-- For `signoff serve`: access keys of people and programs (digests of secrets, not the secrets), comments on pending
-- requests, and replies to writes that a client may send twice (idempotency).

create table access_keys (
  nr integer primary key,
  id text not null unique,
  digest text not null unique,
  kind text not null,
  holder text not null,
  expires_at integer,
  body text not null
);
create index access_keys_holder on access_keys (holder, nr);
create index access_keys_expiry on access_keys (expires_at) where expires_at is not null;

create table comments (
  nr integer primary key,
  request text not null,
  body text not null
);
create index comments_request on comments (request, nr);

create table replies (
  holder text not null,
  name text not null,
  asked text not null,
  status integer not null,
  body text not null,
  at integer not null,
  primary key (holder, name)
) without rowid;
create index replies_at on replies (at);
