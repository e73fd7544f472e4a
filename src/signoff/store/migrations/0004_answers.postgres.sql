-- How people settled a request (`approved`, `edited`, `denied`; empty where nobody did), and by what it is like others:
-- the arguments but for what is written, and all of them. `signoff.store.carry` fills it in for what was asked before.

alter table {s}requests add column answer text not null default '';
alter table {s}requests add column target text not null default '';
alter table {s}requests add column memory_key text not null default '';
create index requests_answer on {s}requests (tool, answer, target, memory_key) where answer <> '';
