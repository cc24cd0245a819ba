-- Takes the trigger of outbox_wake.sql away, where it is there: only then does this lock the table.
do $$
begin
  if exists (select from pg_trigger where tgrelid = to_regclass(:tableName) and tgfoid = to_regprocedure(:wakeName || '()')) then
    drop trigger if exists :trigger on :table;
  end if;
end $$
