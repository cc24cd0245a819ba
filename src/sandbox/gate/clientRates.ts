import type { CurrentSettings } from '../currentSettings.ts'
import type { CountedArrivals } from '../storage/findStored.ts'
import { RateWindow, type Slot } from './rateWindow.ts'

/** The rate limits: each client has a window of its own length and limit, and each address whose client is not known. */
export class ClientRates {
  readonly #settings: CurrentSettings
  readonly #windows = new Map<string | null, RateWindow>()

  constructor(settings: CurrentSettings) {
    this.#settings = settings
  }

  /** Counts a request, if there is room for it. */
  take(client: string | null, address: string, arrivedUs: number): Slot {
    return this.#windowOf(client).take(client ?? address, arrivedUs)
  }

  /** How many more requests the window would take now. */
  remaining(client: string | null, address: string, nowUs: number): number {
    return this.#windowOf(client).remaining(client ?? address, nowUs)
  }

  /** Puts back what was admitted before a restart. */
  restore({ client, address, arrivalsUs }: CountedArrivals): void {
    this.#windowOf(client).restore(client ?? address, arrivalsUs)
  }

  /** Forgets what was counted, of one client or of all. */
  clear(client: string | null): void {
    if (client === null) this.#windows.clear()
    else this.#windows.delete(client)
  }

  #windowOf(client: string | null): RateWindow {
    const { rateLimitRequests, rateLimitWindowSeconds } = this.#settings.of(client)
    const windowUs = Math.round(rateLimitWindowSeconds * 1_000_000)
    const window = this.#windows.get(client) ?? new RateWindow(rateLimitRequests, windowUs)
    this.#windows.set(client, window)
    window.requests = rateLimitRequests
    window.windowUs = windowUs
    return window
  }
}
