import { createHash } from 'node:crypto'

/** A confirmed sale as Tryton's client saw it (tryton.py, `version_of`). */
export interface Version {
  readonly sale: number
  readonly number: string
  readonly date: string
  readonly customer: string
  readonly total: string
  readonly lines: readonly {
    readonly article: string
    readonly description: string
    readonly quantity: string
    readonly price: string
  }[]
  /** True if it was sent before a later version was made. */
  readonly certain: boolean
}

/** A request that had an effect at the service. */
export interface Arrival {
  readonly endpoint: 'data' | 'orders'
  readonly body: string
}

/** A customer's revenue in Tryton's own sales report. */
export interface Revenue {
  readonly customer: string
  readonly revenue: string
}

/**
 * Compares what arrived with what was confirmed: each certain version once at each endpoint, each other one at most once, nothing
 * else, and for each customer the total that the report says.
 *
 * @param last the versions that stand at the end
 * @returns what is wrong, a sentence each
 */
export function compareDocuments(
  versions: readonly Version[],
  last: readonly Version[],
  arrivals: readonly Arrival[],
  revenues: readonly Revenue[],
): string[] {
  const all = [...versions, ...last]
  const problems: string[] = []
  for (const endpoint of ['data', 'orders'] as const) {
    const texts = arrivals.filter((each) => each.endpoint === endpoint).map(({ body }) => textOfBody(endpoint, body))
    const counts = Map.groupBy(texts, (text) => text)
    for (const version of all) {
      const text = endpoint === 'data' ? dataText(version) : orderText(version)
      const times = counts.get(text)?.length ?? 0
      if (times > 1 || (times === 0 && version.certain))
        problems.push(`sale ${version.number} (total ${version.total}) arrived ${times} times at ${endpoint}: ${text}`)
    }
    const known = new Set(all.map((version) => (endpoint === 'data' ? dataText(version) : orderText(version))))
    for (const text of counts.keys())
      if (!known.has(text)) problems.push(`nobody confirmed what arrived at ${endpoint}: ${text}`)
  }
  return [...problems, ...compareRevenues(last, arrivals, revenues)]
}

/** Adds up the last versions that arrived, for each customer, in cents. */
function compareRevenues(
  last: readonly Version[],
  arrivals: readonly Arrival[],
  revenues: readonly Revenue[],
): string[] {
  const standing = new Set(last.map(dataText))
  const arrived = new Map<string, bigint>()
  for (const { endpoint, body } of arrivals) {
    if (endpoint !== 'data' || !standing.has(textOfBody('data', body))) continue
    const { customer_id: customer, total_amount: total } = readBody(body).data
    arrived.set(customer, (arrived.get(customer) ?? 0n) + cents(total))
  }
  const said = new Map(revenues.map(({ customer, revenue }) => [customer, cents(revenue)]))
  return [...new Set([...arrived.keys(), ...said.keys()])]
    .filter((customer) => (arrived.get(customer) ?? 0n) !== (said.get(customer) ?? 0n))
    .map(
      (customer) =>
        `${customer}: ${arrived.get(customer) ?? 0n} cents arrived, and Tryton's report says ${said.get(customer) ?? 0n}`,
    )
}

const dataText = ({ number, customer, total, date }: Version) =>
  JSON.stringify([number, customer, plainDigits(total), date])

const orderText = ({ customer, lines }: Version) =>
  JSON.stringify([
    toUuid(customer),
    lines.map(({ article, description, quantity, price }) => [
      article,
      description,
      plainDigits(quantity),
      plainDigits(price),
    ]),
  ])

function textOfBody(endpoint: Arrival['endpoint'], body: string): string {
  const read = readBody(body)
  if (endpoint === 'data') {
    const { field2, customer_id: customer, total_amount: total, order_date: date } = read.data
    return JSON.stringify([field2, customer, plainDigits(total), date.slice(0, 10)])
  }
  return JSON.stringify([
    read.customerId,
    read.items.map(({ article, description, quantity, unitPrice }) => [
      article,
      description,
      plainDigits(quantity),
      plainDigits(unitPrice),
    ]),
  ])
}

interface Body {
  readonly customerId: string
  readonly data: {
    readonly field2: string
    readonly customer_id: string
    readonly total_amount: string
    readonly order_date: string
  }
  readonly items: readonly {
    readonly article: string
    readonly description: string
    readonly quantity: string
    readonly unitPrice: string
  }[]
}

/** Keeps numbers as text, with their digits. */
const readBody = (body: string) =>
  JSON.parse(body, (_key, value: unknown, context?: { source?: string }) =>
    typeof value === 'number' ? context?.source : value,
  ) as Body

/** Makes `1234.50` and `1234.5` equal. */
const plainDigits = (digits: string) => (digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits)

function cents(amount: string): bigint {
  const [whole = '0', fraction = ''] = amount.split('.')
  if (fraction.slice(2).replaceAll('0', '') !== '') throw new Error(`${amount} has parts of cents`)
  return BigInt(whole) * 100n + BigInt(fraction.slice(0, 2).padEnd(2, '0'))
}

/** Computes `md5(code)::uuid`, as the query does. */
export function toUuid(code: string): string {
  return createHash('md5')
    .update(code)
    .digest('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
