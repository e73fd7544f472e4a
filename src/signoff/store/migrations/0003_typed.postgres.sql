-- As for SQLite.

alter table {s}deliveries rename to deliveries_2;
drop index {s}deliveries_trail;
drop index {s}deliveries_request;
drop index {s}deliveries_live;
drop index {s}deliveries_live_of_trail;

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
  instead text collate "C" not null,
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
  backup_for text collate "C" not null,
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
