-- Copies the rows of to_send from SQL Server into the outbox: docs/start/other-databases.md has the tables and the rules.
-- Needs the 64-bit psqlODBC. Not tried by us.

-- once; "outbox" is the small Postgres' system DSN
exec sp_addlinkedserver @server = N'OUTBOX', @srvproduct = N'PostgreSQL', @provider = N'MSDASQL', @datasrc = N'outbox';
exec sp_addlinkedsrvlogin @rmtsrvname = N'OUTBOX', @useself = N'false', @rmtuser = N'outbox_writer', @rmtpassword = N'…';
exec sp_serveroption N'OUTBOX', N'rpc out', N'true';
exec sp_serveroption N'OUTBOX', N'remote proc transaction promotion', N'false';

-- The job, for SQL Server Agent. Within a transaction, SQL Server would ask for MSDTC.
declare @seq bigint = 0, @key varchar(40), @payload nvarchar(max);
declare @held table (order_no varchar(40));
while 1 = 1
begin
  select top (1) @seq = seq, @key = order_no, @payload = payload from to_send
    where sent_at is null and seq > @seq and order_no not in (select order_no from @held) order by seq;
  if @@rowcount = 0 break;
  begin try
    exec (N'insert into outbox (type, key, payload, erp_id) values (''data'', ?, to_payload(?), ?)
            on conflict (erp_id) do nothing', @key, @payload, @seq) at OUTBOX;
    update to_send set sent_at = sysutcdatetime() where seq = @seq;
  end try
  begin catch
    print error_message();
    insert into @held values (@key);   -- its later rows wait
  end catch
end
if exists (select 1 from @held) raiserror(N'rows were held back', 16, 1);

-- Results: join this with to_send, and copy every status that differs.
select * from openquery(OUTBOX, 'select erp_id, status, transaction_id, error from outbox');
