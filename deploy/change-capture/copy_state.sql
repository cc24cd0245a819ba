-- An example: copies the result of a captured document into columns of the sale. Put in your own names.
--
-- Prefer the view outboxd_capture.document. If a session of the ERP has the sale locked, this trigger waits, and the daemon with it.
--
-- The copy changes the sale, so change capture adds a row, which ends as `discarded`. Do not send the copied columns, and keep `discarded`
-- out of the trigger's condition: otherwise each copy is sent, or causes the next one, without end.
create function copy_state() returns trigger language plpgsql as $$
begin
  update sales_order set sent_state = new.status, sent_id = new.transaction_id
  where id = (new.payload ->> 'id')::int;
  return null;
end $$;
create trigger copy_state after update of status on outbox for each row
  when (new.payload ->> 'document' = 'public.sales_order' and new.status in ('completed', 'failed', 'rejected'))
  execute function copy_state();
