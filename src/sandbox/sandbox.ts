import { createRequire } from 'node:module'
import { packageFolder } from '../packageFolder.ts'
import type { Sandbox, SandboxOptions } from './startSandbox.ts'

export { SettingsWrong } from './settingsWrong.ts'
export type { Sandbox, SandboxOptions }

/**
 * Starts a sandbox for users of the package `outboxd/sandbox` (docs/start/sandbox.md, "In your own CI").
 *
 * @throws Error if this Node.js is too old; the errors of startSandbox.ts
 */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const nodeRefusal: string = createRequire(import.meta.url)(`${packageFolder}bin/nodeRefusal.cjs`)(true)
  if (nodeRefusal !== '') throw new Error(nodeRefusal.trimEnd())
  await import('../olderNodes.ts')
  const sandbox = await import('./startSandbox.ts')
  return sandbox.startSandbox(options)
}
export type { Scenario, ScenarioInput } from './scenario/scenarioSchema.ts'
