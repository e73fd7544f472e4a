-- Times are microseconds since 1970, UTC. The question of a request never changes. It is one JSON text in the last
-- column, so that lists need not read it. What changes, and what lists and searches need, has columns of its own.
-- `waiter` is the process that waits for the answer, and without which nobody makes the call; empty if it stays open
-- without one. `answer` is how people settled it (`approved`, `edited`, `denied`; empty if nobody did). Similar requests
-- are found by `target` (the arguments without what is written) and `memory_key` (all arguments).

create table requests (
  nr integer primary key,
  id text not null unique,
  version integer not null,
  state text not null,
  opened_at integer not null,
  deadline integer,
  remind_at integer,
  escalated integer not null,
  assigned text not null,
  votes integer not null,
  title text not null,
  tool text not null,
  worker text not null,
  role text not null,
  quorum integer not null,
  run text not null,
  conversation text not null,
  call_key text not null,
  waiter text not null,
  answer text not null,
  target text not null,
  memory_key text not null,
  question text not null
);
-- Partial indexes: few requests wait for a person, so these indexes stay small however many are settled.
create index requests_waiting on requests (opened_at, nr) where state in ('pending', 'unknown');
create index requests_deadline on requests (deadline) where state = 'pending' and deadline is not null;
create index requests_remind on requests (remind_at) where state = 'pending' and remind_at is not null;
create index requests_claimed on requests (nr) where state = 'claimed';
create index requests_call on requests (call_key, nr) where call_key <> '';
create index requests_conversation on requests (conversation, opened_at, nr) where conversation <> '';
create index requests_run on requests (run, opened_at, nr) where run <> '';
create index requests_answer on requests (tool, answer, target, memory_key) where answer <> '';
create index requests_awaited on requests (nr) where waiter <> '' and state in ('pending', 'approved');

create table votes (
  request text not null references requests (id),
  place integer not null,
  person text not null,
  vote text not null,
  primary key (request, place)
) without rowid;

create table decisions (
  request text primary key references requests (id),
  ending text not null,
  decided_at integer,
  decision text not null
) without rowid;

-- The single use of an approval: a request never has more than one row here.
create table claims (
  request text primary key references requests (id),
  holder text not null,
  claimed_at integer not null,
  claim text not null
) without rowid;

create table results (
  request text primary key references requests (id),
  result blob not null
);

create table grants (
  nr integer primary key,
  id text not null unique,
  tool text not null,
  memory_key text not null,
  revoked integer not null,
  body text not null
);
create index grants_about on grants (tool, memory_key, nr) where revoked = 0;

create table runs (
  nr integer primary key,
  id text not null unique,
  state text not null,
  body text not null
);
create index runs_going on runs (nr) where state = 'going';

create table segments (
  nr integer primary key,
  id blob not null unique,
  parent blob,
  messages integer not null,
  body blob not null
);

create table processes (
  id text primary key,
  body text not null
) without rowid;

create table delegations (
  nr integer primary key,
  since integer not null,
  until integer not null,
  body text not null
);

-- The chain is over `digests`, which holds one for each field of `body`, made with its salt. Without a field and its
-- salt the chain still verifies: that is how a field is erased.
create table events (
  seq integer primary key,
  at text not null,
  kind text not null,
  request text not null,
  run text not null,
  body text not null,
  salts text not null,
  digests text not null,
  prev text not null,
  hash text not null
);
create index events_request on events (request, seq) where request <> '';
create index events_run on events (run, seq) where run <> '';

-- The head of the hash chain, apart from the events, so that a truncated audit log is noticed.
create table chain (
  one integer primary key check (one = 1),
  seq integer not null,
  hash text not null
);
insert into chain values (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');

create table checkpoints (
  nr integer primary key,
  seq integer not null,
  hash text not null,
  at text not null,
  key text not null,
  signature text not null
);

create table settings (
  name text primary key,
  value text not null
) without rowid;

-- The outbox: what to show in each channel, and the state of each delivery. A delivery keeps its number when it is
-- updated after an attempt, so that deliveries are made in the order they were first added. `change` grows with every
-- change of any delivery, so that a reader fetches only what has changed.
create table deliveries (
  nr integer primary key,
  channel text not null,
  kind text not null,
  about text not null,
  occasion text not null,
  trail text not null,
  state text not null,
  place text not null,
  shown integer not null,
  live integer not null,
  may_stand integer not null,
  hopeless integer not null,
  attempts integer not null,
  since integer,
  due integer,
  problem text not null,
  run_state text not null,
  worker text not null,
  result text not null,
  change integer not null,
  unique (channel, kind, about, occasion)
);
create index deliveries_trail on deliveries (trail, nr);
create index deliveries_about on deliveries (about, nr);
create index deliveries_change on deliveries (change);
-- A partial index: few deliveries may have to be shown again.
create index deliveries_live on deliveries (nr) where live = 1;
create index deliveries_live_of_trail on deliveries (trail, nr) where live = 1;

-- The lease of a channel: which process runs it. The last five columns describe a failure; `since` is null without one.
create table leases (
  nr integer primary key,
  channel text not null unique,
  process text not null,
  since integer,
  problem text not null,
  attempts integer not null,
  due integer,
  hopeless integer not null
);

-- Where a run was started in a channel: its result is sent there.
create table origins (
  run text not null,
  channel text not null,
  place text not null,
  primary key (run, channel)
) without rowid;
create index origins_channel on origins (channel, run);

create table readers (
  request text not null,
  args_digest text not null,
  person text not null,
  primary key (request, args_digest, person)
) without rowid;

create table policies (
  revision text primary key,
  body text not null
);

create table conversations (
  name text primary key,
  run text not null,
  heard text not null
) without rowid;

create table turns (
  conversation text not null,
  agent text not null,
  run text not null,
  primary key (conversation, agent)
) without rowid;

-- The last messages of each conversation, to detect duplicates.
create table messages (
  nr integer primary key,
  conversation text not null,
  message text not null,
  unique (conversation, message)
);

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
