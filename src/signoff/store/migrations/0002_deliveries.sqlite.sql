-- The state of each delivery. A delivery keeps its number when it is updated after an attempt, so that deliveries are
-- made in the order they were first added.

create table deliveries (
  nr integer primary key,
  channel text not null,
  subject text not null,
  trail text not null,
  request text not null,
  live integer not null,
  body text not null,
  unique (channel, subject)
);
create index deliveries_trail on deliveries (trail, nr);
create index deliveries_request on deliveries (request, nr) where request <> '';
-- A partial index: few deliveries may have to be shown again.
create index deliveries_live on deliveries (nr) where live = 1;
create index deliveries_live_of_trail on deliveries (trail, nr) where live = 1;

-- Find the requests that were opened at the same time in a long run or conversation.
drop index requests_conversation;
create index requests_conversation on requests (conversation, opened_at, nr) where conversation <> '';
drop index requests_run;
create index requests_run on requests (run, opened_at, nr) where run <> '';
