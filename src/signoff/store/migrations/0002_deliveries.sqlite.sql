-- How far each channel came with what it shows. A delivery is changed whenever it is shown anew or fails, and then
-- keeps its number: the order they were first put in is the order they are made in.

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
-- What may have to be shown anew is few among many, as what waits is.
create index deliveries_live on deliveries (nr) where live = 1;
create index deliveries_live_of_trail on deliveries (trail, nr) where live = 1;

-- Requests that were asked at once are found among all those of a long run or conversation.
drop index requests_conversation;
create index requests_conversation on requests (conversation, opened_at, nr) where conversation <> '';
drop index requests_run;
create index requests_run on requests (run, opened_at, nr) where run <> '';
