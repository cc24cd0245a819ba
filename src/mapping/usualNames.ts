/**
 * Column names of known outboxes and of Tryton, Odoo, SAP Business One, Dynamics, Sage and German ERPs, the likeliest
 * first, in the form of `normalizeName`.
 */
const rows = {
  id: 'id uuid guid',
  /** A text column is the payload only under one of these names. */
  textPayload: 'payload body messagebody eventdata messagedata',
  payload: 'payload body messagebody eventdata messagedata data message content event document json',
  type: `messagetype eventtype aggregatetype recordtype documenttype objecttype entitytype type destination topic kind`,
  key: `key orderingkey partitionkey messagekey segment aggregateid messagepartition conversationid`,
  transactionId: 'transactionid servicetransactionid externaltransactionid synctransactionid externalid remoteid',
  updatedAt: 'updatedat modifiedat changedat',
  givenUpAt: `abandonedat abandonedon failedat failedon erroredat rejectedat deadat deadletteredat givenupat dismissedat`,
  customer: `customerid customerno customernumber customercode customer party partyid partnerid partner cardcode accountid accountno
    accountnumber clientid client buyerid buyer selltocustomerno billtocustomerno customeraccountnumber slcustomeraccountid bpcord0
    kundennummer kundennr kundenr kundeid kundenid kunde kdnr debitor debitornr debitorennr debtorno kto`,
  orderDate: `orderdate dateorder saledate orderedat orderedon ordered ordertime docdate documentdate documentdatetime submitdate
    bookingdate invoicedate postingdate transactiondate date orddat0 auftragsdatum bestelldatum belegdatum rechnungsdatum
    buchungsdatum datum`,
  amount: `amount totalamount amounttotal total grandtotal doctotal totalamountcache netamount grossamount totalnet totalgross nettotal
    amountincludingvat totalgrossvalue totalnetvalue sum ordati0 ordnot0 gesamtbetrag nettobetrag bruttobetrag endbetrag betrag
    gesamtsumme summe`,
  reference: `field2 orderno ordernumber documentno documentnumber docnum number invoicenumber sohnum0 name no reference description
    auftragsnr auftragsnummer belegnr belegnummer rechnungsnr rechnungsnummer`,
  field1: 'field1',
  items: 'items lines positions',
  currency: 'currency currencyid doccur currencycode transactioncurrencyid waehrung waehrungid wkz cur0',
  createdAt: `createdat created createdon creationtime createdtime creationdate createdate datecreated insertedat recordedat occurredat
    occurredon senttime enqueuetime timestamp datetimecreated systemcreatedat credattim0 erstelltam erstelltum erstelldatum
    angelegtam anlagedatum erfasstam erfassungsdatum erfdat`,
  /** The number of a customer or an article, as it is known outside the ERP. */
  code: `code customerno customernumber customercode accountnumber customeraccountnumber cardcode ref defaultcode itemcode productnumber
    articleno articlenumber itemno sku number no kundennummer kundennr kdnr artikelnummer artikelnr artnr nummer nr`,
  article: `product productid article articleid articleno articlenumber item itemid itemcode itemno sku material itmref0 productnumber no
    artikel artikelid artikelnr artikelnummer artnr`,
  quantity: `quantity qty productuomqty orderedquantity orderqty linequantity qty0 pieces units ordered menge anzahl stueck stueckzahl`,
  unit: `unit uom unitid uomid productuom unitofmeasure unitofmeasurecode uomcode unitmsr sau0 einheit mengeneinheit me`,
  unitPrice: `unitprice priceunit price priceperunit priceeach unitsellingprice netpri0 einzelpreis stueckpreis preis ep`,
  lineAmount: `lineamount linetotal linetotalvalue pricesubtotal extendedamount amount total gesamtpreis positionsbetrag zeilenbetrag
    nettobetrag betrag`,
  description:
    'description itemdescription productdescription dscription name text bezeichnung artikelbezeichnung beschreibung',
  position: `position pos sequence lineno linenum linenumber lineitemnumber sortorder soplin0 positionsnr positionsnummer posnr posnummer
    zeile zeilennr`,
} as const

export type UsualNameKind = keyof typeof rows

const usualNames = Object.fromEntries(
  Object.entries(rows).map(([kind, names]) => [kind, names.split(/\s+/)]),
) as unknown as Readonly<Record<UsualNameKind, readonly string[]>>

/** Reduces SentTime, sent_time and "sent time" to senttime. */
export const normalizeName = (name: string): string => name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')

export const isUsualName = (name: string, kind: UsualNameKind): boolean =>
  usualNames[kind].includes(normalizeName(name))

/** `netAmount_EUR` becomes net, amount, eur. */
export const splitNameIntoWords = (name: string): string[] =>
  name
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')

interface Named {
  readonly name: string
}

/** Returns the likeliest first. */
export const findAllByUsualName = <T extends Named>(columns: readonly T[], kind: UsualNameKind): T[] =>
  usualNames[kind].flatMap((usual) => columns.filter(({ name }) => normalizeName(name) === usual))

export const chooseByUsualName = <T extends Named>(columns: readonly T[], kind: UsualNameKind): T | null =>
  findAllByUsualName(columns, kind)[0] ?? null
