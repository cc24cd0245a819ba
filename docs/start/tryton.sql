-- The tables of sales of Tryton 6.0, with a sale that is a quotation and one that was done: docs/start/tutorial-erp.md uses them.
create table party_party (id serial primary key, active boolean default false, code varchar not null unique,
  create_date timestamp(6), create_uid integer, name varchar, replaced_by integer references party_party,
  write_date timestamp(6), write_uid integer);
create table product_uom (id serial primary key, active boolean, category integer not null, digits integer not null,
  factor double precision not null, name varchar not null, symbol varchar(10) not null);
create table product_product (id serial primary key, active boolean, code varchar, description text, suffix_code varchar,
  template integer not null);
create table sale_sale (id serial primary key, comment text, company integer not null, contact integer, create_date timestamp(6),
  create_uid integer, currency integer not null, description varchar, invoice_method varchar not null,
  invoice_party integer references party_party, invoice_state varchar not null, number varchar, origin varchar,
  party integer not null references party_party, reference varchar, sale_date date, shipment_method varchar not null,
  shipment_party integer references party_party, shipment_state varchar not null, shipping_date date, state varchar not null,
  tax_amount_cache numeric, total_amount_cache numeric, untaxed_amount_cache numeric, warehouse integer,
  write_date timestamp(6), write_uid integer, check (id >= 0));
create table sale_line (id serial primary key, actual_quantity double precision, create_date timestamp(6), description text,
  note text, product integer references product_product, quantity double precision,
  sale integer not null references sale_sale on delete cascade, sequence integer, type varchar not null,
  unit integer references product_uom, unit_price numeric, write_date timestamp(6), write_uid integer);
create table sale_invoice_ignored_rel (id serial primary key, sale integer not null references sale_sale, invoice integer not null);

insert into party_party (code, name) values ('C17', 'Jane');
insert into product_uom (category, digits, factor, name, symbol) values (1, 0, 1, 'Unit', 'u');
insert into product_product (code, template) values ('A1', 1);
insert into sale_sale (company, currency, invoice_method, invoice_state, number, party, sale_date, shipment_method,
  shipment_state, state, total_amount_cache) values
  (1, 1, 'order', 'none', '7', 1, '2026-11-20', 'order', 'none', 'quotation', 24.6900),
  (1, 1, 'order', 'none', '6', 1, '2026-11-19', 'order', 'none', 'done', 5);
insert into sale_line (sale, sequence, type, product, quantity, unit, unit_price, description) values
  (1, 2, 'line', 1, 2, 1, 12.345, 'later'), (1, 1, 'line', 1, 1, 1, 0.00, 'first'),
  (1, 3, 'comment', null, null, null, null, 'x'), (2, 1, 'line', 1, 1, 1, 5, 'before');
