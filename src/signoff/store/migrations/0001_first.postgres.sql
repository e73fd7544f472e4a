-- As for SQLite. Ids compare by bytes (collate "C"), whatever the locale of the database, so that a prefix is a range.

create table {s}requests (
  nr bigint generated always as identity primary key,
  id text collate "C" not null unique,
  version bigint not null,
  state text not null,
  opened_at bigint not null,
  deadline bigint,
  remind_at bigint,
  escalated integer not null,
  assigned text not null,
  votes integer not null,
  title text not null,
  tool text not null,
  worker text not null,
  role text not null,
  quorum integer not null,
  run text collate "C" not null,
  conversation text collate "C" not null,
  call_key text collate "C" not null,
  question text not null
);
create index requests_waiting on {s}requests (opened_at, nr) where state in ('pending', 'unknown');
create index requests_deadline on {s}requests (deadline) where state = 'pending' and deadline is not null;
create index requests_remind on {s}requests (remind_at) where state = 'pending' and remind_at is not null;
create index requests_claimed on {s}requests (nr) where state = 'claimed';
create index requests_call on {s}requests (call_key, nr) where call_key <> '';
create index requests_conversation on {s}requests (conversation, nr) where conversation <> '';
create index requests_run on {s}requests (run, nr) where run <> '';

create table {s}votes (
  request text collate "C" not null references {s}requests (id),
  place integer not null,
  person text not null,
  vote text not null,
  primary key (request, place)
);

create table {s}decisions (
  request text collate "C" primary key references {s}requests (id),
  ending text not null,
  decided_at bigint,
  decision text not null
);

create table {s}claims (
  request text collate "C" primary key references {s}requests (id),
  holder text not null,
  claimed_at bigint not null,
  claim text not null
);

create table {s}results (
  request text collate "C" primary key references {s}requests (id),
  result bytea not null
);

create table {s}grants (
  nr bigint generated always as identity primary key,
  id text collate "C" not null unique,
  tool text collate "C" not null,
  memory_key text collate "C" not null,
  revoked integer not null,
  body text not null
);
create index grants_about on {s}grants (tool, memory_key, nr) where revoked = 0;

create table {s}runs (
  nr bigint generated always as identity primary key,
  id text collate "C" not null unique,
  state text not null,
  body text not null
);
create index runs_going on {s}runs (nr) where state = 'going';

create table {s}segments (
  nr bigint generated always as identity primary key,
  id bytea not null unique,
  parent bytea,
  messages integer not null,
  body bytea not null
);

create table {s}processes (
  id text collate "C" primary key,
  body text not null
);

create table {s}delegations (
  nr bigint generated always as identity primary key,
  since bigint not null,
  until bigint not null,
  body text not null
);

create table {s}events (
  seq bigint primary key,
  at text not null,
  kind text not null,
  request text collate "C" not null,
  run text collate "C" not null,
  body text not null,
  prev text not null,
  hash text not null
);
create index events_request on {s}events (request, seq) where request <> '';
create index events_run on {s}events (run, seq) where run <> '';

-- The head of the hash chain. Every writer locks this row first, so all writers take turns. `writes` counts the
-- updates, for watchers that poll for changes.
create table {s}chain (
  one integer primary key check (one = 1),
  seq bigint not null,
  hash text not null,
  writes bigint not null default 0
) with (fillfactor = 10);
insert into {s}chain (one, seq, hash) values (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');

create table {s}checkpoints (
  nr bigint generated always as identity primary key,
  seq bigint not null,
  hash text not null,
  at text not null,
  key text not null,
  signature text not null
);

create table {s}settings (
  name text collate "C" primary key,
  value text not null
);
