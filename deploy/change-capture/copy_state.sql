-- An example: copies the result of each captured order into a table. Put in your own names. Prefer the view outboxd_capture.document.
--
-- Do not copy into the order itself: change capture captures the copy. If the record failed or was rejected, the order would be sent again
-- after each copy, without end.
create table public.sales_order_result (id text primary key, state text not null, transaction_id text);

-- The trigger runs with the rights of the daemon's role:
--   grant select, insert, update on public.sales_order_result to outboxd;
create function copy_state() returns trigger language plpgsql as $$
begin
  insert into public.sales_order_result values (new.payload ->> 'id', new.status, new.transaction_id)
    on conflict (id) do update set state = excluded.state, transaction_id = excluded.transaction_id;
  return null;
end $$;
create trigger copy_state after update of status on outbox for each row
  when (new.payload ->> 'document' = 'public.sales_order' and new.status in ('completed', 'failed', 'rejected'))
  execute function copy_state();
