import { createRequire } from 'node:module'
import type { Sandbox, SandboxOptions } from './startSandbox.ts'

export { SettingsWrong } from './settingsWrong.ts'
export type { Sandbox, SandboxOptions }

/**
 * What the package exports as `outboxd/sandbox`, for tests: docs/sandbox.md, "In your own CI". Loads the sandbox where this Node can
 * read it.
 *
 * @throws Error that says which Node it needs, where this one is too old; all that the sandbox's own startSandbox throws
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const nodeRefusal: string = createRequire(import.meta.url)('../../bin/nodeRefusal.cjs')()
  if (nodeRefusal !== '') throw new Error(nodeRefusal.trimEnd())
  const sandbox = await import('./startSandbox.ts')
  return sandbox.startSandbox(options)
}
export type { Scenario, ScenarioInput } from './scenario/scenarioSchema.ts'
