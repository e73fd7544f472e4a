-- How people settled a request (`approved`, `edited`, `denied`; empty if nobody did), and what similar requests are
-- found by: the target (the arguments without what is written), and all arguments. `signoff.store.data_migration` fills
-- the columns for older requests.

alter table {s}requests add column answer text not null default '';
alter table {s}requests add column target text not null default '';
alter table {s}requests add column memory_key text not null default '';
create index requests_answer on {s}requests (tool, answer, target, memory_key) where answer <> '';
