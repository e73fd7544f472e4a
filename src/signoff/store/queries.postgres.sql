-- Queries that are written differently for PostgreSQL.

-- name: whole_request
select r.id, r.version, r.state, r.opened_at, r.deadline, r.remind_at, r.escalated, r.assigned, r.waiter,
       case when r.votes > 0 then (
         select '[' || string_agg(v.vote, ',' order by v.place) || ']' from {s}votes v where v.request = r.id
       ) end,
       d.decision, c.claim, r.question
from {s}requests r
left join {s}decisions d on d.request = r.id
left join {s}claims c on c.request = r.id

-- name: lock_chain
-- The clock is read once the lock is held, which may have taken long.
select seq, hash, number, (extract(epoch from clock_timestamp()) * 1000000)::bigint
from (select seq, hash, txid_current() as number from {s}chain for update) locked

-- name: has_event
select 1 from {s}events where seq = ? and hash = ?

-- name: put_head
update {s}chain set seq = ?, hash = ?, writes = writes + 1

-- name: writes
select writes from {s}chain

-- Every value is given twice; an empty value does not filter.
-- name: chosen_requests
(? = '' or tool = ?) and (? = '' or run = ?) and (? = '' or assigned = ?)
  and (? = '' or strpos(' > ' || worker || ' > ', ' > ' || ? || ' > ') > 0)
  and (? = '' or strpos(lower((title || ' ' || tool || ' ' || worker) collate "C"), ?) > 0)
