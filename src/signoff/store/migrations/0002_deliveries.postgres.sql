-- As for SQLite.

create table {s}deliveries (
  nr bigint generated always as identity primary key,
  channel text collate "C" not null,
  subject text collate "C" not null,
  trail text collate "C" not null,
  request text collate "C" not null,
  live integer not null,
  body text not null,
  unique (channel, subject)
);
create index deliveries_trail on {s}deliveries (trail, nr);
create index deliveries_request on {s}deliveries (request, nr) where request <> '';
create index deliveries_live on {s}deliveries (nr) where live = 1;
create index deliveries_live_of_trail on {s}deliveries (trail, nr) where live = 1;

drop index {s}requests_conversation;
create index requests_conversation on {s}requests (conversation, opened_at, nr) where conversation <> '';
drop index {s}requests_run;
create index requests_run on {s}requests (run, opened_at, nr) where run <> '';
