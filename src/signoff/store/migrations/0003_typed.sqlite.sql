-- What was JSON in a column, or in a setting, gets tables and columns of its own. `signoff.store.data_migration`
-- migrates the old data from the tables that are renamed here.

alter table deliveries rename to deliveries_2;
drop index deliveries_trail;
drop index deliveries_request;
drop index deliveries_live;
drop index deliveries_live_of_trail;

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
  instead text not null,
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
  backup_for text not null,
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
