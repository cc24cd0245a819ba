import type { CurrentSettings } from '../currentSettings.ts'
import type { Endpoint } from '../endpoints/requestSchemas.ts'
import type { CountedArrivals } from '../storage/findStored.ts'
import { FixedWindow, RateWindow, type Slot } from './rateWindow.ts'

interface Asker {
  client: string | null
  tokenId: string | null
  address: string
  endpoint: Endpoint | 'other'
}

export interface RateSlot extends Slot {
  counted: boolean
  /** Takes the request out of the count. @returns what remains */
  giveBack(): number
}

/** Rate limits per client, or per address if the client is unknown. */
export class ClientRates {
  readonly #settings: CurrentSettings
  readonly #windows = new Map<string | null, RateWindow | FixedWindow>()
  /** For rateLimitPerSecond. */
  readonly #short = new Map<string | null, RateWindow>()

  constructor(settings: CurrentSettings) {
    this.#settings = settings
  }

  take(asker: Asker, arrivedUs: number): RateSlot {
    const window = this.#windowOf(asker.client)
    const name = this.#nameOf(asker)
    const remaining = () => window.remaining(name, arrivedUs)
    const uncounted = { counted: false, giveBack: remaining }
    if (!this.#counts(asker)) return { ...uncounted, admitted: true, remaining: remaining(), retryAfterSeconds: 0 }
    const { rateLimitRefused } = this.#settings.of(asker.client)
    const short = this.#shortWindowOf(asker.client)
    if (short !== undefined && remaining() > 0 && !short.take(name, arrivedUs, rateLimitRefused).admitted)
      return { ...uncounted, admitted: false, remaining: remaining(), retryAfterSeconds: 1 }
    const slot = window.take(name, arrivedUs, rateLimitRefused)
    const giveBack = () => {
      window.giveBack(name, arrivedUs)
      short?.giveBack(name, arrivedUs)
      return remaining()
    }
    return { ...slot, counted: slot.admitted, giveBack }
  }

  restore({ client, address, arrivalsUs }: CountedArrivals): void {
    this.#windowOf(client).restore(client ?? address, arrivalsUs)
  }

  clear(client: string | null): void {
    for (const windows of [this.#windows, this.#short]) {
      if (client === null) windows.clear()
      else windows.delete(client)
    }
  }

  #counts({ client, endpoint }: Asker): boolean {
    const { rateLimitPolls, rateLimitTokens } = this.#settings.of(client)
    if (endpoint === 'token') return rateLimitTokens
    return rateLimitPolls || (endpoint !== 'status' && endpoint !== 'order_status')
  }

  #nameOf({ client, tokenId, address, endpoint }: Asker): string {
    const { rateLimitScope, rateLimitOrders } = this.#settings.of(client)
    const whose = { client: client ?? address, token: tokenId ?? address, address }[rateLimitScope]
    const isApart = rateLimitOrders === 'apart' && (endpoint === 'order' || endpoint === 'order_status')
    return isApart ? `${whose} orders` : whose
  }

  #windowOf(client: string | null): RateWindow | FixedWindow {
    const { rateLimitScope, rateLimitKind, rateLimitRequests, rateLimitWindowSeconds } = this.#settings.of(client)
    const of = rateLimitScope === 'address' ? null : client
    const Kind = rateLimitKind === 'fixed' ? FixedWindow : RateWindow
    const windowUs = Math.round(rateLimitWindowSeconds * 1_000_000)
    const known = this.#windows.get(of)
    const window = known instanceof Kind ? known : new Kind(rateLimitRequests, windowUs)
    this.#windows.set(of, window)
    window.requests = rateLimitRequests
    window.windowUs = windowUs
    return window
  }

  #shortWindowOf(client: string | null): RateWindow | undefined {
    const { rateLimitScope, rateLimitPerSecond } = this.#settings.of(client)
    if (rateLimitPerSecond === null) return undefined
    const of = rateLimitScope === 'address' ? null : client
    const window = this.#short.get(of) ?? new RateWindow(rateLimitPerSecond, 1_000_000)
    this.#short.set(of, window)
    window.requests = rateLimitPerSecond
    return window
  }
}
