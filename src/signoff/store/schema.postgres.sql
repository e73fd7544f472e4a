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
  waiter text not null,
  answer text not null,
  target text not null,
  memory_key text not null,
  question text not null
);
create index requests_waiting on {s}requests (opened_at, nr) where state in ('pending', 'unknown');
create index requests_deadline on {s}requests (deadline) where state = 'pending' and deadline is not null;
create index requests_remind on {s}requests (remind_at) where state = 'pending' and remind_at is not null;
create index requests_claimed on {s}requests (nr) where state = 'claimed';
create index requests_call on {s}requests (call_key, nr) where call_key <> '';
create index requests_conversation on {s}requests (conversation, opened_at, nr) where conversation <> '';
create index requests_run on {s}requests (run, opened_at, nr) where run <> '';
create index requests_answer on {s}requests (tool, answer, target, memory_key) where answer <> '';
create index requests_awaited on {s}requests (nr) where waiter <> '' and state in ('pending', 'approved');

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
  salts text not null,
  digests text not null,
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

create table {s}deliveries (
  nr bigint generated always as identity primary key,
  channel text collate "C" not null,
  kind text collate "C" not null,
  about text collate "C" not null,
  occasion text collate "C" not null,
  trail text collate "C" not null,
  state text collate "C" not null,
  place text collate "C" not null,
  shown bigint not null,
  live integer not null,
  may_stand integer not null,
  hopeless integer not null,
  attempts integer not null,
  since bigint,
  due bigint,
  problem text not null,
  run_state text collate "C" not null,
  worker text not null,
  result text not null,
  change bigint not null,
  unique (channel, kind, about, occasion)
);
create index deliveries_trail on {s}deliveries (trail, nr);
create index deliveries_about on {s}deliveries (about, nr);
create index deliveries_change on {s}deliveries (change);
create index deliveries_live on {s}deliveries (nr) where live = 1;
create index deliveries_live_of_trail on {s}deliveries (trail, nr) where live = 1;

create table {s}leases (
  nr bigint generated always as identity primary key,
  channel text collate "C" not null unique,
  process text collate "C" not null,
  since bigint,
  problem text not null,
  attempts integer not null,
  due bigint,
  hopeless integer not null
);

create table {s}origins (
  run text collate "C" not null,
  channel text collate "C" not null,
  place text collate "C" not null,
  primary key (run, channel)
);
create index origins_channel on {s}origins (channel, run);

create table {s}readers (
  request text collate "C" not null,
  args_digest text collate "C" not null,
  person text collate "C" not null,
  primary key (request, args_digest, person)
);

create table {s}policies (
  revision text collate "C" primary key,
  body text not null
);

create table {s}conversations (
  name text collate "C" primary key,
  run text collate "C" not null,
  heard text collate "C" not null
);

create table {s}turns (
  conversation text collate "C" not null,
  agent text collate "C" not null,
  run text collate "C" not null,
  primary key (conversation, agent)
);

create table {s}messages (
  nr bigint generated always as identity primary key,
  conversation text collate "C" not null,
  message text collate "C" not null,
  unique (conversation, message)
);

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
