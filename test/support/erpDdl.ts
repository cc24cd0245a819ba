import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Tables of ERPs for `describe`: a header, its lines and the tables that they look up, with a document. */
export interface Erp {
  readonly name: string
  /** The header, as `describe` takes it. */
  readonly table: string
  readonly ddl: string
  /** The id of the document that `ddl` inserts. */
  readonly id: unknown
  /** The number of its lines, headings and notes included. */
  readonly lines: number
  /** The lines, as `describe --child` takes them. */
  readonly child: string
  /** Changes a line of the document. */
  readonly touch: string
}

export const erps: readonly Erp[] = [
  {
    name: 'Tryton 6.0',
    table: 'sale_sale',
    ddl: readFileSync(join(import.meta.dirname, '../../docs/start/tryton.sql'), 'utf8'),
    id: 1,
    lines: 3,
    child: 'public.sale_line(sale)',
    touch: 'update sale_line set quantity = 3 where sequence = 1',
  },
  {
    name: 'Odoo 17',
    table: 'sale_order',
    ddl: `create table res_partner (id serial primary key, name varchar, ref varchar, vat varchar, email varchar, create_date timestamp);
      create table product_product (id serial primary key, product_tmpl_id integer, default_code varchar, barcode varchar);
      create table sale_order (id serial primary key, campaign_id integer, company_id integer not null,
        partner_id integer not null references res_partner, partner_invoice_id integer not null references res_partner,
        partner_shipping_id integer not null references res_partner, currency_id integer, user_id integer, access_token varchar,
        name varchar not null, state varchar, client_order_ref varchar, origin varchar, reference varchar, invoice_status varchar,
        validity_date date, note text, currency_rate numeric, amount_untaxed numeric, amount_tax numeric, amount_total numeric,
        locked boolean, create_date timestamp, commitment_date timestamp, date_order timestamp not null, write_date timestamp);
      create table sale_order_line (id serial primary key, order_id integer not null references sale_order on delete cascade,
        sequence integer, product_id integer references product_product, product_uom integer, order_partner_id integer references res_partner,
        state varchar, display_type varchar, name text not null, product_uom_qty numeric not null, price_unit numeric not null,
        discount numeric, price_subtotal numeric, price_total numeric, qty_delivered numeric, create_date timestamp);
      create table sale_order_option (id serial primary key, order_id integer references sale_order, line_id integer,
        product_id integer references product_product, name text, quantity numeric, price_unit numeric);
      create table stock_picking (id serial primary key, sale_id integer references sale_order, name varchar);
      insert into res_partner (name, ref) values ('Jane', 'C17');
      insert into product_product (default_code) values ('A1');
      insert into sale_order (company_id, partner_id, partner_invoice_id, partner_shipping_id, name, state, amount_untaxed, amount_tax,
        amount_total, date_order, create_date) values (1, 1, 1, 1, 'S00042', 'draft', 20, 4, 24.00, '2026-11-20 09:30:00', now());
      insert into sale_order_line (order_id, sequence, product_id, display_type, name, product_uom_qty, price_unit, price_subtotal)
        values (1, 10, 1, null, 'Chair', 2.0, 10.0, 20.00), (1, 5, null, 'line_section', 'Heading', 0, 0, 0);`,
    id: 1,
    lines: 2,
    child: 'public.sale_order_line(order_id)',
    touch: 'update sale_order_line set product_uom_qty = 3',
  },
  {
    name: 'SAP Business One, without foreign keys',
    table: 'dbo.OINV',
    ddl: `create schema dbo;
      create table dbo."OCRD" ("CardCode" varchar(15) primary key, "CardName" varchar(100), "CardType" char(1), "CreateDate" timestamp);
      create table dbo."OITM" ("ItemCode" varchar(50) primary key, "ItemName" varchar(100));
      create table dbo."OINV" ("DocEntry" integer primary key, "DocNum" integer not null, "DocType" char(1) default 'I',
        "CANCELED" char(1) default 'N', "DocStatus" char(1) default 'O', "ObjType" varchar(20) default '13', "DocDate" timestamp,
        "DocDueDate" timestamp, "CardCode" varchar(15), "CardName" varchar(100), "NumAtCard" varchar(100), "VatSum" numeric(19,6),
        "DocCur" varchar(3), "DocRate" numeric(19,6), "DocTotal" numeric(19,6), "DocTotalFC" numeric(19,6), "PaidToDate" numeric(19,6),
        "TaxDate" timestamp, "CreateDate" timestamp, "UpdateDate" timestamp, "Transfered" char(1) default 'N', "Printed" char(1) default 'N');
      create table dbo."INV1" ("DocEntry" integer, "LineNum" integer, "LineStatus" char(1), "ItemCode" varchar(50),
        "Dscription" varchar(200), "Quantity" numeric(19,6), "OpenQty" numeric(19,6), "Price" numeric(19,6), "Currency" varchar(3),
        "LineTotal" numeric(19,6), "unitMsr" varchar(100), primary key ("DocEntry", "LineNum"));
      create table dbo."INV12" ("DocEntry" integer primary key, "StreetS" varchar(100));
      create table dbo."ORDR" ("DocEntry" integer primary key, "DocNum" integer, "CardCode" varchar(15));
      create table dbo."RDR1" ("DocEntry" integer, "LineNum" integer, "ItemCode" varchar(50), "Quantity" numeric(19,6),
        primary key ("DocEntry", "LineNum"));
      insert into dbo."OINV" ("DocEntry", "DocNum", "DocDate", "DocDueDate", "CardCode", "DocTotal", "VatSum")
        values (5, 1005, '2026-11-20', '2026-12-20', 'C17', 24.690000, 3.94);
      insert into dbo."INV1" values (5, 0, 'O', 'A1', 'Chair', 2.000000, 2, 12.345000, 'EUR', 24.690000, 'pc');
      insert into dbo."RDR1" values (5, 0, 'other', 1);`,
    id: 5,
    lines: 1,
    child: 'dbo."INV1"("DocEntry")',
    touch: 'update dbo."INV1" set "Quantity" = 3',
  },
  {
    name: 'Dynamics 365 (Dataverse)',
    table: 'salesorder',
    ddl: `create table account (accountid uuid primary key, accountnumber varchar(20), name varchar(160), createdon timestamptz);
      create table product (productid uuid primary key, productnumber varchar(100), name varchar(100));
      create table salesorder (salesorderid uuid primary key, ordernumber varchar(100), name varchar(300), customerid uuid,
        accountid uuid references account, statecode integer default 0, statuscode integer, submitdate timestamptz,
        datefulfilled timestamptz, requestdeliveryby date, totalamount numeric(23,10), totallineitemamount numeric(23,10),
        totaltax numeric, transactioncurrencyid uuid, createdon timestamptz, modifiedon timestamptz, versionnumber bigint);
      create table salesorderdetail (salesorderdetailid uuid primary key, salesorderid uuid references salesorder,
        lineitemnumber integer, productid uuid references product, productdescription varchar(500), quantity numeric(23,10),
        priceperunit numeric(23,10), baseamount numeric, extendedamount numeric(23,10), tax numeric);
      insert into account values ('00000000-0000-4000-8000-000000000017', 'C17', 'Jane');
      insert into product values ('00000000-0000-4000-8000-0000000000a1', 'A1', 'Chair');
      insert into salesorder (salesorderid, ordernumber, accountid, submitdate, totalamount, totaltax)
        values ('00000000-0000-4000-8000-000000000001', 'ORD-1', '00000000-0000-4000-8000-000000000017', '2026-11-20 09:30Z', 24.69, 4);
      insert into salesorderdetail values ('00000000-0000-4000-8000-0000000000d1', '00000000-0000-4000-8000-000000000001', 1,
        '00000000-0000-4000-8000-0000000000a1', 'Chair', 2, 12.345, 24.69, 24.69, 4);`,
    id: '00000000-0000-4000-8000-000000000001',
    lines: 1,
    child: 'public.salesorderdetail(salesorderid)',
    touch: 'update salesorderdetail set quantity = 3',
  },
  {
    name: 'Dynamics NAV, without foreign keys',
    table: 'nav."Sales Invoice Header"',
    ddl: `create schema nav;
      create table nav."Customer" ("No_" varchar(20) primary key, "Name" varchar(100));
      create table nav."Sales Invoice Header" ("No_" varchar(20) primary key, "Sell-to Customer No_" varchar(20) not null,
        "Bill-to Customer No_" varchar(20) not null, "Order Date" timestamp, "Posting Date" timestamp not null, "Due Date" timestamp,
        "Document Date" timestamp, "Currency Code" varchar(10), "Amount Including VAT" numeric(38,20), "Your Reference" varchar(35));
      create table nav."Sales Invoice Line" ("Document No_" varchar(20), "Line No_" integer, "Sell-to Customer No_" varchar(20),
        "Type" integer, "No_" varchar(20), "Description" varchar(100), "Unit of Measure" varchar(50), "Quantity" numeric(38,20),
        "Unit Price" numeric(38,20), "Amount" numeric(38,20), "Amount Including VAT" numeric(38,20), primary key ("Document No_", "Line No_"));
      insert into nav."Sales Invoice Header" values ('R-1', 'C17', 'C17', '2026-11-20', '2026-11-21', '2026-12-21', '2026-11-21', null, 24.69);
      insert into nav."Sales Invoice Line" values ('R-1', 10000, 'C17', 2, 'A1', 'Chair', 'PCS', 2, 12.345, 24.69, 29.38);`,
    id: 'R-1',
    lines: 1,
    child: 'nav."Sales Invoice Line"("Document No_")',
    touch: 'update nav."Sales Invoice Line" set "Quantity" = 3',
  },
  {
    name: 'Sage 200',
    table: 'SOPOrderReturn',
    ddl: `create table "SLCustomerAccount" ("SLCustomerAccountID" bigint primary key, "CustomerAccountNumber" varchar(8) not null,
        "CustomerAccountName" varchar(60));
      create table "SOPOrderReturn" ("SOPOrderReturnID" bigint primary key, "DocumentTypeID" bigint, "DocumentNo" varchar(20) not null,
        "DocumentDate" timestamp not null, "CustomerID" bigint not null references "SLCustomerAccount", "CustomerDocumentNo" varchar(30),
        "DocumentStatusID" bigint, "RequestedDeliveryDate" timestamp, "TotalNetValue" numeric(18,5), "TotalTaxValue" numeric(18,5),
        "TotalGrossValue" numeric(18,5), "DateTimeCreated" timestamp default now(), "OpLock" bytea);
      create table "SOPOrderReturnLine" ("SOPOrderReturnLineID" bigint primary key,
        "SOPOrderReturnID" bigint not null references "SOPOrderReturn", "PrintSequenceNumber" integer, "ItemCode" varchar(30),
        "ItemDescription" varchar(1000), "LineQuantity" numeric(15,5), "UnitSellingPrice" numeric(18,5), "LineTotalValue" numeric(18,5));
      insert into "SLCustomerAccount" values (3, 'C17', 'Jane');
      insert into "SOPOrderReturn" ("SOPOrderReturnID", "DocumentNo", "DocumentDate", "CustomerID", "TotalNetValue", "TotalGrossValue")
        values (9, '0000000123', '2026-11-20', 3, 20, 24.69);
      insert into "SOPOrderReturnLine" values (1, 9, 1, 'A1', 'Chair', 2, 12.345, 24.69);`,
    id: 9,
    lines: 1,
    child: 'public."SOPOrderReturnLine"("SOPOrderReturnID")',
    touch: 'update "SOPOrderReturnLine" set "LineQuantity" = 3',
  },
  {
    name: 'a German legacy schema in quoted capitals',
    table: 'FIBU.AUFTRAGSKOPF',
    ddl: `create schema "FIBU";
      create table "FIBU"."KUNDEN" ("KUNDENNR" numeric(8) primary key, "NAME1" varchar(40), "ORT" varchar(40));
      create table "FIBU"."ARTIKEL" ("ARTIKELNR" varchar(20) primary key, "BEZEICHNUNG" varchar(60));
      create table "FIBU"."AUFTRAGSKOPF" ("AUFTRAGSNR" integer primary key, "KUNDENNR" numeric(8) not null,
        "AUFTRAGSDATUM" date not null, "LIEFERDATUM" date, "NETTOBETRAG" numeric(12,2), "MWST_BETRAG" numeric(12,2),
        "STATUS" char(1) default 'E', "ERFASST_AM" timestamp, "BEARBEITER" varchar(20));
      create table "FIBU"."AUFTRAGSPOSITION" ("AUFTRAGSNR" integer, "POSNR" integer, "ARTIKELNR" varchar(20), "BEZEICHNUNG" varchar(60),
        "MENGE" numeric(10,3), "EINHEIT" varchar(4), "EINZELPREIS" numeric(12,4), "GESAMTPREIS" numeric(12,2),
        primary key ("AUFTRAGSNR", "POSNR"));
      create table "FIBU"."LAGERBEWEGUNG" ("BEWEGUNGSNR" integer primary key, "AUFTRAGSNR" integer, "ARTIKELNR" varchar(20), "MENGE" numeric(10,3));
      insert into "FIBU"."KUNDEN" values (4711, 'Jane', 'Berlin');
      insert into "FIBU"."AUFTRAGSKOPF" values (100, 4711, '2026-11-20', null, 24.69, 4.69, 'F', now(), 'x');
      insert into "FIBU"."AUFTRAGSPOSITION" values (100, 2, 'A2', 'Tisch', 1, 'ST', 1, 1), (100, 1, 'A1', 'Stuhl', 2.000, 'ST', 12.3450, 24.69);
      insert into "FIBU"."LAGERBEWEGUNG" values (1, 100, 'A1', 2);`,
    id: 100,
    lines: 2,
    child: '"FIBU"."AUFTRAGSPOSITION"("AUFTRAGSNR")',
    touch: 'update "FIBU"."AUFTRAGSPOSITION" set "MENGE" = 3',
  },
]
