import { sandbox } from '../../src/commands/sandbox.ts'

/** The command `sandbox` as a process of its own, to be killed by tests. */
process.exitCode = await sandbox(
  { env: process.env, stdout: process.stdout, stderr: process.stderr, signal: AbortSignal.any([]) },
  { port: process.argv[2] ?? 0, json: true },
)
