import type pg from 'pg'
import type { ClientSettings, LiveSettings, SettingsPatch } from './sandboxSettings.ts'
import { readOrCreateState, writeState } from './storage/sandboxSchema.ts'

/** Key of the changes that hold for all clients. */
const allClients = ''

/**
 * The current settings. Each of these wins over those before it: the settings of the start, /_sandbox/settings, the
 * client's own settings of the start, /_sandbox/settings?client=. Changes are in the database, so a restart keeps them.
 */
export class CurrentSettings {
  readonly #pool: pg.Pool
  readonly #asStarted: LiveSettings
  readonly #own: ReadonlyMap<string, SettingsPatch>
  #changes: Record<string, SettingsPatch>
  readonly #merged = new Map<string | null, LiveSettings>()

  private constructor(
    pool: pg.Pool,
    asStarted: LiveSettings,
    clients: readonly ClientSettings[],
    changes: Record<string, SettingsPatch>,
  ) {
    this.#pool = pool
    this.#asStarted = asStarted
    this.#own = new Map(clients.map(({ id, secret: _secret, ...own }) => [id, own as SettingsPatch]))
    this.#changes = changes
  }

  static async open(pool: pg.Pool, asStarted: LiveSettings, clients: readonly ClientSettings[]) {
    return new CurrentSettings(pool, asStarted, clients, await readOrCreateState(pool, 'client_settings', {}))
  }

  /** Returns the same object until a setting changes. */
  of(client: string | null): LiveSettings {
    const known = this.#merged.get(client)
    if (known) return known
    const ofClient = client === null ? {} : { ...this.#own.get(client), ...this.changed(client) }
    const merged = { ...this.#asStarted, ...this.changed(null), ...ofClient }
    this.#merged.set(client, merged)
    return merged
  }

  changed(client: string | null): SettingsPatch {
    return this.#changes[client ?? allClients] ?? {}
  }

  change(client: string | null, more: SettingsPatch): Promise<void> {
    return this.#put({ ...this.#changes, [client ?? allClients]: { ...this.changed(client), ...more } })
  }

  resetChanges(client: string | null): Promise<void> {
    return this.#put(client === null ? {} : { ...this.#changes, [client]: {} })
  }

  get longestWindowSeconds(): number {
    return Math.max(...[null, ...this.#own.keys()].map((client) => this.of(client).rateLimitWindowSeconds))
  }

  get changedNames(): string[] {
    return Object.entries(this.#changes).flatMap(([client, patch]) =>
      Object.keys(patch).map((name) => (client === allClients ? name : `${name} of ${client}`)),
    )
  }

  async #put(changes: Record<string, SettingsPatch>): Promise<void> {
    await writeState(this.#pool, 'client_settings', changes)
    this.#changes = changes
    this.#merged.clear()
  }
}
