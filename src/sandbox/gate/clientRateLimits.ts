import type { Arrival } from '../exchange.ts'
import type { LiveSettings } from '../sandboxSettings.ts'
import type { CountedArrivals } from '../storage/findStored.ts'

type Requester = Pick<Arrival, 'address' | 'endpoint'> & { client: string | null; tokenId: string | null }

export interface RateDecision {
  admitted: boolean
  counted: boolean
  remaining: number
  retryAfterSeconds: number
  uncount(): number
}

const secondUs = 1_000_000

/**
 * Rate limits per client, or per address if the client is unknown. By default, no sliding window has more admitted
 * requests than the limit, and refused requests do not count, so that a client that retries gets in again.
 *
 * @see docs/reference/interface.md, 8
 */
export class ClientRateLimits {
  readonly #live: (client: string | null) => LiveSettings
  /** Oldest first, by client and by the name of the limit. */
  readonly #arrivalsUs = new Map<string | null, Map<string, number[]>>()

  constructor(live: (client: string | null) => LiveSettings) {
    this.#live = live
  }

  /** @param nowUs never earlier than in the last call */
  admit(requester: Requester, nowUs: number): RateDecision {
    const live = this.#live(requester.client)
    const { rateLimitRequests, rateLimitPerSecond, rateLimitRefused } = live
    const timesUs = this.#arrivalsOf(live, requester.client, nameOfLimit(live, requester))
    const beginUs = windowBeginUs(live, nowUs)
    timesUs.splice(0, countBefore(timesUs, Math.min(beginUs, nowUs - secondUs + 1)))
    const remaining = () => Math.max(0, rateLimitRequests - (timesUs.length - countBefore(timesUs, beginUs)))
    if (!isCounted(live, requester))
      return { admitted: true, counted: false, remaining: remaining(), retryAfterSeconds: 0, uncount: remaining }
    const hasRoom = remaining() > 0
    const inSecond = () => timesUs.length - countBefore(timesUs, nowUs - secondUs + 1)
    const admitted = hasRoom && (rateLimitPerSecond === null || inSecond() < rateLimitPerSecond)
    if (admitted || rateLimitRefused) timesUs.push(nowUs)
    return {
      admitted,
      counted: admitted,
      remaining: remaining(),
      retryAfterSeconds: hasRoom ? 1 : waitSeconds(live, timesUs, nowUs),
      uncount() {
        const index = timesUs.lastIndexOf(nowUs)
        if (index >= 0) timesUs.splice(index, 1)
        return remaining()
      },
    }
  }

  restore({ client, address, arrivalsUs }: CountedArrivals): void {
    this.#arrivalsOf(this.#live(client), client, client ?? address).push(...arrivalsUs)
  }

  clear(client: string | null): void {
    if (client === null) this.#arrivalsUs.clear()
    else this.#arrivalsUs.delete(client)
  }

  #arrivalsOf({ rateLimitScope }: LiveSettings, client: string | null, name: string): number[] {
    const of = rateLimitScope === 'address' ? null : client
    const ofClient = this.#arrivalsUs.get(of) ?? new Map<string, number[]>()
    const timesUs = ofClient.get(name) ?? []
    this.#arrivalsUs.set(of, ofClient.set(name, timesUs))
    return timesUs
  }
}

function isCounted({ rateLimitPolls, rateLimitTokens }: LiveSettings, { endpoint }: Requester): boolean {
  if (endpoint === 'token') return rateLimitTokens
  return rateLimitPolls || (endpoint !== 'status' && endpoint !== 'order_status')
}

function nameOfLimit(live: LiveSettings, { client, tokenId, address, endpoint }: Requester): string {
  const name = { client: client ?? address, token: tokenId ?? address, address }[live.rateLimitScope]
  const isApart = live.rateLimitOrders === 'apart' && (endpoint === 'order' || endpoint === 'order_status')
  return isApart ? `${name} orders` : name
}

/** A sliding window ends at `nowUs`; a fixed window contains `nowUs`. */
function windowBeginUs({ rateLimitKind, rateLimitWindowSeconds }: LiveSettings, nowUs: number): number {
  const windowUs = Math.round(rateLimitWindowSeconds * secondUs)
  return rateLimitKind === 'fixed' ? Math.floor(nowUs / windowUs) * windowUs : nowUs - windowUs + 1
}

function waitSeconds(live: LiveSettings, timesUs: readonly number[], nowUs: number): number {
  const leavingUs = timesUs[Math.max(0, timesUs.length - live.rateLimitRequests)] ?? nowUs
  const fromUs = live.rateLimitKind === 'fixed' ? windowBeginUs(live, nowUs) : leavingUs
  return Math.max(1, Math.ceil((fromUs - nowUs) / secondUs + live.rateLimitWindowSeconds))
}

function countBefore(timesUs: readonly number[], us: number): number {
  const index = timesUs.findIndex((timeUs) => timeUs >= us)
  return index < 0 ? timesUs.length : index
}
