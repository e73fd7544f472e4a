-- Times are microseconds since 1970, UTC. The question of a request never changes. It is one JSON text in the last
-- column, so that lists need not read it. What changes, and what lists and searches need, has columns of its own.

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
  question text not null
);
-- Partial indexes: few requests wait for a person, so these indexes stay small however many are settled.
create index requests_waiting on requests (opened_at, nr) where state in ('pending', 'unknown');
create index requests_deadline on requests (deadline) where state = 'pending' and deadline is not null;
create index requests_remind on requests (remind_at) where state = 'pending' and remind_at is not null;
create index requests_claimed on requests (nr) where state = 'claimed';
create index requests_call on requests (call_key, nr) where call_key <> '';
create index requests_conversation on requests (conversation, nr) where conversation <> '';
create index requests_run on requests (run, nr) where run <> '';

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

create table events (
  seq integer primary key,
  at text not null,
  kind text not null,
  request text not null,
  run text not null,
  body text not null,
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
