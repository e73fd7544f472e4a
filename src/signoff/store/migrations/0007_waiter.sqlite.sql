-- The process that waits for the answer to a request, and without which nobody makes the call. Empty: the request stays
-- open without it.

alter table requests add column waiter text not null default '';
-- A partial index: few requests are waited for.
create index requests_awaited on requests (nr) where waiter <> '' and state in ('pending', 'approved');
