-- The named queries of both databases. `?` is a value, `{s}` the schema, `{delivery}` the query `whole_delivery`.
-- `{request}` is the query `whole_request` and `{chosen}` the filters of a list, `chosen_requests`: both are in
-- queries.sqlite.sql and queries.postgres.sql, because the two databases write them differently.

-- name: request
{request} where r.id = ?

-- name: about
{request} where r.call_key <> '' and r.call_key = ? order by r.nr desc limit 1

-- How people answered similar calls, and the request about the call itself, in one round trip, because every new
-- request needs both. Each count stops at a limit, so that a long history does not make it slow.
-- name: asked_before
with one (tool, target, memory_key, most) as (
  select cast(? as text), cast(? as text), cast(? as text), cast(? as integer)
)
select
  (select count(*) from (
    select 1 from {s}requests q
    where q.answer <> '' and q.tool = one.tool and q.answer = 'approved' and q.target = one.target
      and q.memory_key = one.memory_key
    limit (select most from one)
  ) as found),
  (select count(*) from (
    select 1 from {s}requests q
    where q.answer <> '' and q.tool = one.tool and q.answer = 'denied' and q.target = one.target
      and q.memory_key = one.memory_key
    limit (select most from one)
  ) as found),
  (select count(*) from (
    select 1 from {s}requests q
    where q.answer <> '' and q.tool = one.tool and q.answer = 'approved' and q.target = one.target
    limit (select most from one)
  ) as found),
  (select count(*) from (
    select 1 from {s}requests q
    where q.answer <> '' and q.tool = one.tool and q.answer = 'denied' and q.target = one.target
    limit (select most from one)
  ) as found),
  (select count(*) from (
    select 1 from {s}requests q
    where q.answer <> '' and q.tool = one.tool and q.answer in ('approved', 'edited')
    limit (select most from one)
  ) as found),
  (select count(*) from (
    select 1 from {s}requests q
    where q.answer <> '' and q.tool = one.tool and q.answer = 'denied'
    limit (select most from one)
  ) as found),
  known.*
from one
left join ({request} where r.call_key <> '' and r.call_key = ? order by r.nr desc limit 1) as known on 1 = 1

-- name: open_requests
{request} where r.state in ('pending', 'unknown') and r.state = 'pending' order by r.opened_at, r.nr limit ?

-- name: requests_of_conversation
{request} where r.conversation <> '' and r.conversation = ? order by r.opened_at, r.nr

-- name: requests_of_run
{request} where r.run <> '' and r.run = ? order by r.opened_at, r.nr

-- What is told of a run, without reading whole questions: it may wait for thousands.
-- name: waiting_of_run
select id, state, title, worker from {s}requests
where run <> '' and run = ? and state in ('pending', 'unknown')
order by nr
limit ?

-- name: waiting_count_of_run
select count(*) from {s}requests where run <> '' and run = ? and state in ('pending', 'unknown')

-- name: answered_of_run
select r.id, r.state, r.title, r.worker, d.decided_at, c.claim
from {s}requests r
left join {s}decisions d on d.request = r.id
left join {s}claims c on c.request = r.id
where r.run <> '' and r.run = ? and r.state in ('approved', 'denied', 'expired')
order by r.nr

-- name: requests_of_both
{request} where r.conversation <> '' and r.conversation = ? and r.run = ? order by r.opened_at, r.nr

-- name: asked_at_in_conversation
select id from {s}requests where conversation <> '' and conversation = ? and opened_at = ? order by nr

-- name: asked_at_in_run
select id from {s}requests where run <> '' and run = ? and opened_at = ? order by nr

-- name: recent
{request} where r.state not in ('pending', 'unknown') order by r.nr desc limit ?

-- name: add_request
insert into {s}requests (id, version, state, opened_at, deadline, remind_at, escalated, assigned, votes, role,
                         quorum, answer, waiter, title, tool, worker, run, conversation, call_key, target, memory_key,
                         question)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: put_request
update {s}requests
set version = ?, state = ?, opened_at = ?, deadline = ?, remind_at = ?, escalated = ?, assigned = ?, votes = ?, role = ?,
    quorum = ?, answer = ?, waiter = ?
where id = ?

-- name: put_question
update {s}requests
set title = ?, tool = ?, worker = ?, run = ?, conversation = ?, call_key = ?, target = ?, memory_key = ?, question = ?
where id = ?

-- name: put_vote
insert into {s}votes (request, place, person, vote) values (?, ?, ?, ?)
on conflict (request, place) do update set person = excluded.person, vote = excluded.vote

-- name: drop_votes
delete from {s}votes where request = ? and place >= ?

-- name: put_decision
insert into {s}decisions (request, ending, decided_at, decision) values (?, ?, ?, ?)
on conflict (request) do update
set ending = excluded.ending, decided_at = excluded.decided_at, decision = excluded.decision

-- name: drop_decision
delete from {s}decisions where request = ?

-- name: add_claim
insert into {s}claims (request, holder, claimed_at, claim) values (?, ?, ?, ?)

-- name: put_claim
update {s}claims set holder = ?, claimed_at = ?, claim = ? where request = ?

-- name: inbox
select id, state, title, tool, worker, run, role, quorum, votes, assigned, opened_at, deadline, escalated
from {s}requests
where state in ('pending', 'unknown')
order by opened_at, nr
limit ?

-- name: inbox_after
select id, state, title, tool, worker, run, role, quorum, votes, assigned, opened_at, deadline, escalated
from {s}requests
where state in ('pending', 'unknown')
  and (opened_at, nr) > (?, (select coalesce(max(nr), 0) from {s}requests where id = ?))
order by opened_at, nr
limit ?

-- name: listed_waiting
select id, state, title, tool, worker, run, role, quorum, votes, assigned, opened_at, deadline, escalated
from {s}requests
where state in ('pending', 'unknown') and {chosen}
  and (opened_at, nr) > (?, (select coalesce(max(nr), 0) from {s}requests where id = ?))
order by opened_at, nr
limit ?

-- name: listed_settled
select id, state, title, tool, worker, run, role, quorum, votes, assigned, opened_at, deadline, escalated
from {s}requests
where state not in ('pending', 'unknown') and {chosen}
  and nr < (select coalesce(max(nr), ?) from {s}requests where id = ?)
order by nr desc
limit ?

-- name: listed_all
select id, state, title, tool, worker, run, role, quorum, votes, assigned, opened_at, deadline, escalated
from {s}requests
where {chosen} and nr < (select coalesce(max(nr), ?) from {s}requests where id = ?)
order by nr desc
limit ?

-- A query of its own, so that the index of runs is used: it is not if the filter by run is optional.
-- name: listed_settled_of_run
select id, state, title, tool, worker, run, role, quorum, votes, assigned, opened_at, deadline, escalated
from {s}requests
where run <> '' and run = ? and state not in ('pending', 'unknown') and {chosen}
  and nr < (select coalesce(max(nr), ?) from {s}requests where id = ?)
order by nr desc
limit ?

-- name: listed_all_of_run
select id, state, title, tool, worker, run, role, quorum, votes, assigned, opened_at, deadline, escalated
from {s}requests
where run <> '' and run = ? and {chosen} and nr < (select coalesce(max(nr), ?) from {s}requests where id = ?)
order by nr desc
limit ?

-- name: waiting_count
select count(*) from (select 1 from {s}requests where state in ('pending', 'unknown') limit ?) as found

-- name: waiting_counts
select state, count(*) from {s}requests where state in ('pending', 'unknown') group by state

-- name: requests_like
select id from {s}requests where id >= ? and id < ? order by id limit ?

-- name: runs_like
select id from {s}runs where id >= ? and id < ? order by id limit ?

-- name: opened_at
select opened_at from {s}requests where id = ?

-- name: due
select id from (
  select id, deadline as moment from {s}requests
  where state = 'pending' and deadline is not null and deadline <= ?
  union all
  select id, remind_at as moment from {s}requests
  where state = 'pending' and remind_at is not null and remind_at <= ?
) as found
group by id
order by min(moment), id

-- name: claimed
select r.id, c.holder
from {s}requests r join {s}claims c on c.request = r.id
where r.state = 'claimed'
order by r.nr

-- name: awaited
select id, waiter from {s}requests where waiter <> '' and state in ('pending', 'approved') order by nr

-- name: keep_result
insert into {s}results (request, result) values (?, ?)
on conflict (request) do update set result = excluded.result

-- name: drop_results
delete from {s}results where request in (select id from {s}requests where run <> '' and run = ?)

-- name: result
select result from {s}results where request = ?

-- name: add_grant
insert into {s}grants (id, tool, memory_key, revoked, body) values (?, ?, ?, ?, ?)

-- name: put_grant
insert into {s}grants (id, tool, memory_key, revoked, body) values (?, ?, ?, ?, ?)
on conflict (id) do update
set tool = excluded.tool, memory_key = excluded.memory_key, revoked = excluded.revoked, body = excluded.body

-- name: grant
select body from {s}grants where id = ?

-- name: grants_about
select body from {s}grants
where revoked = 0 and tool = ? and memory_key in (?, '')
order by nr

-- name: grants
select body from {s}grants where revoked = 0 order by nr

-- name: all_grants
select body from {s}grants order by nr

-- name: add_run
insert into {s}runs (id, state, body) values (?, ?, ?)

-- name: put_run
insert into {s}runs (id, state, body) values (?, ?, ?)
on conflict (id) do update set state = excluded.state, body = excluded.body

-- name: run
select body from {s}runs where id = ?

-- name: runs
select id, body from {s}runs
where state <> 'inside' and nr < (select coalesce(max(nr), ?) from {s}runs where id = ?)
order by nr desc limit ?

-- name: runs_going
select id, body from {s}runs
where state = 'going' and nr < (select coalesce(max(nr), ?) from {s}runs where id = ?)
order by nr desc limit ?

-- name: add_segment
insert into {s}segments (id, parent, messages, body) values (?, ?, ?, ?)
on conflict (id) do nothing

-- name: has_segment
select 1 from {s}segments where id = ?

-- name: segments
with recursive history (depth, nr, parent) as (
  select 0, nr, parent from {s}segments where id = ?
  union all
  select h.depth + 1, s.nr, s.parent
  from history h join {s}segments s on s.id = h.parent
)
select s.id, s.parent, s.messages, s.body
from history h join {s}segments s on s.nr = h.nr
order by h.depth desc

-- name: put_process
insert into {s}processes (id, body) values (?, ?)
on conflict (id) do update set body = excluded.body

-- name: process
select body from {s}processes where id = ?

-- name: add_delegation
insert into {s}delegations (since, until, body) values (?, ?, ?)

-- name: delegations
select body from {s}delegations where until > ? and since <= ? order by nr

-- name: open_delegations
select nr, body from {s}delegations where until > ? order by nr

-- name: end_delegation
update {s}delegations set until = ?, body = ? where nr = ?

-- name: put_delivery
insert into {s}deliveries (channel, kind, about, occasion, trail, state, place, shown, live, may_stand, hopeless,
                            attempts, since, due, problem, run_state, worker, result, change)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
        (select coalesce(max(change), 0) + 1 from {s}deliveries))
on conflict (channel, kind, about, occasion) do update
set trail = excluded.trail, state = excluded.state, place = excluded.place, shown = excluded.shown,
    live = excluded.live, may_stand = excluded.may_stand, hopeless = excluded.hopeless, attempts = excluded.attempts,
    since = excluded.since, due = excluded.due, problem = excluded.problem,
    run_state = excluded.run_state, worker = excluded.worker, result = excluded.result, change = excluded.change

-- name: delivery
{delivery} where channel = ? and kind = ? and about = ? and occasion = ?

-- name: deliveries
{delivery} where ? in ('', channel) order by nr

-- name: live_deliveries
{delivery} where live = 1 and ? in ('', channel) order by nr

-- name: deliveries_of_trail
{delivery} where trail = ? and ? in ('', channel) order by nr

-- name: live_deliveries_of_trail
{delivery} where live = 1 and trail = ? and ? in ('', channel) order by nr

-- name: last_deliveries
{delivery} where trail = ? and channel = ? order by nr desc limit ?

-- name: deliveries_of_request
{delivery}
where about = ? and kind in ('request', 'reminder') and ? in ('', trail) and ? in ('', channel) and live >= ?
order by nr

-- name: whole_delivery
select channel, kind, about, occasion, trail, state, place, shown, live, may_stand, hopeless, attempts, since, due,
       problem, run_state, worker, result
from {s}deliveries

-- name: last_change
select coalesce(max(change), 0) from {s}deliveries

-- name: changed_trails
select trail from {s}deliveries where change > ?

-- name: untold
select r.id from {s}runs r
where r.state not in ('going', 'inside')
  and not exists (
    select 1 from {s}deliveries d
    where d.channel = ? and d.kind = 'result' and d.about = r.id and d.occasion = '' and d.run_state <> 'going'
  )
  and (
    exists (select 1 from {s}origins o where o.channel = ? and o.run = r.id)
    or exists (select 1 from {s}deliveries d where d.trail = r.id and d.channel = ?)
  )
order by r.nr

-- name: put_origin
insert into {s}origins (run, channel, place) values (?, ?, ?)
on conflict (run, channel) do update set place = excluded.place

-- name: put_lease
insert into {s}leases (channel, process, since, problem, attempts, due, hopeless)
values (?, ?, ?, ?, ?, ?, ?)
on conflict (channel) do update
set process = excluded.process, since = excluded.since, problem = excluded.problem,
    attempts = excluded.attempts, due = excluded.due, hopeless = excluded.hopeless

-- name: lease
select channel, process, since, problem, attempts, due, hopeless from {s}leases where channel = ?

-- name: leases
select channel, process, since, problem, attempts, due, hopeless from {s}leases order by nr

-- name: add_reader
insert into {s}readers (request, args_digest, person) values (?, ?, ?)
on conflict (request, args_digest, person) do nothing

-- name: reader
select 1 from {s}readers where request = ? and args_digest = ? and person = ?

-- name: put_policy
insert into {s}policies (revision, body) values (?, ?)
on conflict (revision) do update set body = excluded.body

-- name: policy
select body from {s}policies where revision = ?

-- name: put_conversation
insert into {s}conversations (name, run, heard) values (?, ?, ?)
on conflict (name) do update set run = excluded.run, heard = excluded.heard

-- name: conversation
select run, heard from {s}conversations where name = ?

-- name: put_turn
insert into {s}turns (conversation, agent, run) values (?, ?, ?)
on conflict (conversation, agent) do update set run = excluded.run

-- name: drop_turns
delete from {s}turns where conversation = ?

-- name: turns
select agent, run from {s}turns where conversation = ? order by agent

-- name: add_message
insert into {s}messages (conversation, message) values (?, ?)

-- name: drop_message
delete from {s}messages where conversation = ? and message = ?

-- name: messages
select message from {s}messages where conversation = ? order by nr

-- name: put_access_key
insert into {s}access_keys (id, digest, kind, holder, expires_at, body) values (?, ?, ?, ?, ?, ?)
on conflict (id) do update set expires_at = excluded.expires_at, body = excluded.body

-- name: access_key
select body from {s}access_keys where id = ?

-- name: access_key_by_digest
select body from {s}access_keys where digest = ?

-- name: access_keys
select body from {s}access_keys where (? = '' or kind = ?) and (? = '' or holder = ?) order by nr

-- name: drop_access_keys
delete from {s}access_keys where expires_at is not null and expires_at < ?

-- name: add_comment
insert into {s}comments (request, body) values (?, ?)

-- name: comments
select body from {s}comments where request = ? order by nr

-- name: put_reply
insert into {s}replies (holder, name, asked, status, body, at) values (?, ?, ?, ?, ?, ?)
on conflict (holder, name) do update
set asked = excluded.asked, status = excluded.status, body = excluded.body, at = excluded.at

-- name: reply
select asked, status, body from {s}replies where holder = ? and name = ?

-- name: drop_replies
delete from {s}replies where at < ?

-- name: put_aap_request
insert into {s}aap_requests (id, instance, key, stage, deadline, touched_at, body) values (?, ?, ?, ?, ?, ?, ?)
on conflict (id) do update set stage = excluded.stage, touched_at = excluded.touched_at, body = excluded.body

-- name: aap_request
select body from {s}aap_requests where id = ?

-- name: aap_request_by_key
select body from {s}aap_requests where instance = ? and key = ?

-- name: going_aap_requests
select body from {s}aap_requests where instance = ? and stage <> 'over' order by nr

-- name: waiting_aap_requests
select count(*) from {s}aap_requests where instance = ? and stage = 'open'

-- name: due_aap_requests
select id from {s}aap_requests where stage = 'open' and deadline <= ? order by deadline, nr

-- name: drop_aap_requests
delete from {s}aap_requests where stage <> 'open' and touched_at < ?

-- name: put_aap_instance
insert into {s}aap_instances (id, provisioner, key, revoked_at, body) values (?, ?, ?, ?, ?)
on conflict (id) do update set revoked_at = excluded.revoked_at, body = excluded.body

-- name: aap_instance
select body from {s}aap_instances where id = ?

-- name: aap_instance_by_key
select body from {s}aap_instances where provisioner = ? and key = ?

-- name: aap_instances
select body from {s}aap_instances order by nr

-- name: living_aap_instances
select body from {s}aap_instances where revoked_at is null order by nr

-- name: drop_aap_instances
delete from {s}aap_instances where revoked_at is not null and revoked_at < ?

-- name: append
insert into {s}events (seq, at, kind, request, run, body, prev, hash) values (?, ?, ?, ?, ?, ?, ?, ?)

-- name: head
select seq, hash from {s}chain

-- name: put_head
update {s}chain set seq = ?, hash = ?

-- name: entries
select seq, at, kind, request, run, body, prev, hash from {s}events
where seq > ?
order by seq limit ?

-- name: entries_of_request
select seq, at, kind, request, run, body, prev, hash from {s}events
where request <> '' and request = ? and seq > ?
order by seq limit ?

-- name: entries_of_run
select seq, at, kind, request, run, body, prev, hash from {s}events
where run <> '' and run = ? and seq > ?
order by seq limit ?

-- name: entries_of_both
select seq, at, kind, request, run, body, prev, hash from {s}events
where request <> '' and request = ? and run = ? and seq > ?
order by seq limit ?

-- name: touched
select request from {s}events where seq > ? and request <> '' order by seq

-- name: add_checkpoint
insert into {s}checkpoints (seq, hash, at, key, signature) values (?, ?, ?, ?, ?)

-- name: checkpoints
select seq, hash, at, key, signature from {s}checkpoints order by nr

-- name: setting
select value from {s}settings where name = ?

-- name: set_setting
insert into {s}settings (name, value) values (?, ?)
on conflict (name) do update set value = excluded.value

-- name: drop_setting
delete from {s}settings where name = ?
