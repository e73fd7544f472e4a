-- Queries that are written differently for SQLite.

-- name: whole_request
select r.id, r.version, r.state, r.opened_at, r.deadline, r.remind_at, r.escalated, r.assigned, r.waiter,
       case when r.votes > 0 then (
         select '[' || group_concat(v.vote, ',') || ']'
         from (select vote from votes where request = r.id order by place) v
       ) end,
       d.decision, c.claim, r.question
from requests r
left join decisions d on d.request = r.id
left join claims c on c.request = r.id

-- Every value is given twice; an empty value does not filter.
-- name: chosen_requests
(? = '' or tool = ?) and (? = '' or run = ?) and (? = '' or assigned = ?)
  and (? = '' or instr(' > ' || worker || ' > ', ' > ' || ? || ' > ') > 0)
  and (? = '' or instr(lower(title || ' ' || tool || ' ' || worker), ?) > 0)
