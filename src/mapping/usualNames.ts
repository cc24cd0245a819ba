/**
 * Column names of Tryton, Odoo, SAP Business One, Dynamics, Sage and German ERPs, the likeliest first, in the form of
 * `normalizeName`.
 */
const rows = {
  customer: `customerid customerno customernumber customercode customer party partyid partnerid partner cardcode accountid accountno
    accountnumber clientid client buyerid buyer selltocustomerno billtocustomerno customeraccountnumber slcustomeraccountid bpcord0
    kundennummer kundennr kundenr kundeid kundenid kunde kdnr debitor debitornr debitorennr debtorno kto`,
  orderDate: `orderdate dateorder saledate orderedat orderedon ordered ordertime docdate documentdate documentdatetime submitdate
    bookingdate invoicedate postingdate transactiondate date orddat0 auftragsdatum bestelldatum belegdatum rechnungsdatum
    buchungsdatum datum`,
  amount: `amount totalamount amounttotal total grandtotal doctotal totalamountcache netamount grossamount totalnet totalgross nettotal
    amountincludingvat totalgrossvalue totalnetvalue sum ordati0 ordnot0 gesamtbetrag nettobetrag bruttobetrag endbetrag betrag
    gesamtsumme summe`,
  reference: `field2 orderno ordernumber documentno documentnumber docnum number invoicenumber sohnum0 no reference name description
    auftragsnr auftragsnummer belegnr belegnummer rechnungsnr rechnungsnummer`,
  currency: 'currency currencyid doccur currencycode transactioncurrencyid waehrung waehrungid wkz cur0',
  createdAt: `createdat created createdon creationtime createdtime creationdate createdate datecreated insertedat recordedat occurredat
    occurredon senttime enqueuetime timestamp datetimecreated systemcreatedat credattim0 erstelltam erstelltum erstelldatum
    angelegtam anlagedatum erfasstam erfassungsdatum erfdat`,
  /** The number of a customer or an article that is known outside the ERP. */
  code: `code customerno customernumber customercode accountnumber customeraccountnumber cardcode ref defaultcode itemcode productnumber
    articleno articlenumber itemno sku number no kundennummer kundennr kdnr artikelnummer artikelnr artnr nummer nr`,
  article: `product productid article articleid articleno articlenumber item itemid itemcode itemno sku material itmref0 productnumber no
    artikel artikelid artikelnr artikelnummer artnr`,
  quantity: `quantity qty productuomqty orderedquantity orderqty linequantity qty0 pieces units ordered menge anzahl stueck stueckzahl`,
  unit: `unit uom unitid uomid productuom unitofmeasure unitofmeasurecode uomcode unitmsr sau0 einheit mengeneinheit me`,
  unitPrice: `unitprice priceunit price priceperunit priceeach unitsellingprice netpri0 einzelpreis stueckpreis preis ep`,
  lineAmount: `lineamount linetotal linetotalvalue pricesubtotal extendedamount amount total gesamtpreis positionsbetrag zeilenbetrag
    nettobetrag betrag`,
  description: 'description itemdescription dscription name text bezeichnung artikelbezeichnung beschreibung',
  position: `position pos sequence lineno linenum linenumber lineitemnumber sortorder soplin0 positionsnr positionsnummer posnr posnummer
    zeile zeilennr`,
} as const

export type UsualNameKind = keyof typeof rows

export const usualNames = Object.fromEntries(
  Object.entries(rows).map(([what, names]) => [what, names.split(/\s+/)]),
) as unknown as Readonly<Record<UsualNameKind, readonly string[]>>

/** Makes SentTime, sent_time and "sent time" equal. */
export const normalizeName = (name: string): string => name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')

export const isUsualName = (name: string, what: UsualNameKind): boolean =>
  usualNames[what].includes(normalizeName(name))

/** Splits a name into lower-case words: `netAmount_EUR` becomes net, amount, eur. */
export const splitNameIntoWords = (name: string): string[] =>
  name
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')

/** Words that give a usual name a different meaning, as in `invoice_date_due` and `tax_amount`. */
const beside =
  /^(tax|vat|mwst|steuer|discount|rabatt|skonto|due|faellig|planned|requested|expected|paid|open|residual|rate|kurs|fc|sys|foreign|count|method|type|state|status|by|old|last|ship|shipping|shipment|delivery|lieferung|changed|modified|write|update)$/

/** Ranks by name: `named` has a usual name; `alike` contains one (`Sell-to Customer No_`, `VKAUFTRAGSDATUM`). */
export function rankByUsualName<T>(
  all: readonly T[],
  nameOf: (each: T) => string,
  what: UsualNameKind,
): { named: readonly T[]; alike: readonly T[] } {
  const usual = usualNames[what]
  const named = usual.flatMap((name) => all.filter((each) => normalizeName(nameOf(each)) === name))
  const alike = all.filter((each) => !named.includes(each) && hasUsualWithin(nameOf(each), usual))
  return { named, alike }
}

function hasUsualWithin(name: string, usual: readonly string[]): boolean {
  const words = splitNameIntoWords(name)
  if (words.some((word) => beside.test(word))) return false
  const whole = words.join('')
  const runs = words.flatMap((_, start) =>
    words.slice(start).map((_, end) => words.slice(start, start + end + 1).join('')),
  )
  return usual.some((each) => each.length >= 4 && (runs.includes(each) || (each.length >= 5 && whole.endsWith(each))))
}

/** Chooses the first with a usual name, or else the only one whose name contains a usual name. */
export function chooseByUsualName<T>(all: readonly T[], nameOf: (each: T) => string, what: UsualNameKind): T | null {
  const { named, alike } = rankByUsualName(all, nameOf, what)
  return named[0] ?? (alike.length === 1 ? (alike[0] as T) : null)
}
