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
