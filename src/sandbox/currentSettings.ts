import type pg from 'pg'
import type { ClientSettings, LiveSettings, SettingsPatch } from './sandboxSettings.ts'
import { readOrCreateState, writeState } from './storage/sandboxSchema.ts'

interface Patches {
  all: SettingsPatch
  clients: Record<string, SettingsPatch>
}

/**
 * The current settings. Later ones win: the settings of the start, /_sandbox/settings, the client's own settings of the
 * start, /_sandbox/settings?client=. Changes are in the database and outlive a restart.
 */
export class CurrentSettings {
  readonly #pool: pg.Pool
  readonly #asStarted: LiveSettings
  readonly #own: ReadonlyMap<string, SettingsPatch>
  #patches: Patches
  readonly #merged = new Map<string | null, LiveSettings>()

  private constructor(pool: pg.Pool, asStarted: LiveSettings, clients: readonly ClientSettings[], patches: Patches) {
    this.#pool = pool
    this.#asStarted = asStarted
    this.#own = new Map(clients.map(({ id, secret: _secret, ...own }) => [id, own as SettingsPatch]))
    this.#patches = patches
  }

  static async open(
    pool: pg.Pool,
    asStarted: LiveSettings,
    clients: readonly ClientSettings[],
  ): Promise<CurrentSettings> {
    const all = await readOrCreateState<SettingsPatch>(pool, 'settings', {})
    const ofClients = await readOrCreateState<Record<string, SettingsPatch>>(pool, 'client_settings', {})
    return new CurrentSettings(pool, asStarted, clients, { all, clients: ofClients })
  }

  of(client: string | null): LiveSettings {
    const known = this.#merged.get(client)
    if (known) return known
    const ofClient = client === null ? {} : { ...this.#own.get(client), ...this.changed(client) }
    const merged = { ...this.#asStarted, ...this.#patches.all, ...ofClient }
    if (client === null || this.#own.has(client)) this.#merged.set(client, merged)
    return merged
  }

  changed(client: string | null): SettingsPatch {
    return (client === null ? this.#patches.all : this.#patches.clients[client]) ?? {}
  }

  change(client: string | null, more: SettingsPatch): Promise<void> {
    return this.#put(client, { ...this.changed(client), ...more })
  }

  async resetChanges(client: string | null): Promise<void> {
    const concerned = client === null ? [null, ...Object.keys(this.#patches.clients)] : [client]
    for (const each of concerned) await this.#put(each, {})
  }

  get longestWindowSeconds(): number {
    return Math.max(...[null, ...this.#own.keys()].map((client) => this.of(client).rateLimitWindowSeconds))
  }

  get changedNames(): string[] {
    const ofClients = Object.entries(this.#patches.clients).flatMap(([client, patch]) =>
      Object.keys(patch).map((name) => `${name} of ${client}`),
    )
    return [...Object.keys(this.#patches.all), ...ofClients]
  }

  async #put(client: string | null, patch: SettingsPatch): Promise<void> {
    const { all, clients } = this.#patches
    const next = client === null ? { all: patch, clients } : { all, clients: { ...clients, [client]: patch } }
    if (client === null) await writeState(this.#pool, 'settings', next.all)
    else await writeState(this.#pool, 'client_settings', next.clients)
    this.#patches = next
    this.#merged.clear()
  }
}
