-- Up Migration

-- A row of the outbox may stand for a document of the ERP, whose content is read when the row is taken (docs/start/change-capture.md, "What is
-- captured and sent"). What would be sent for it is compared with what was sent last: request_digest outlives the request.
alter table outboxd.submission
  add column document       text,   -- such as: public.sale_sale 5
  add column request_digest text;
alter table outboxd.pruned_submission
  add column document       text,
  add column request_digest text,
  add column seq            bigint;
