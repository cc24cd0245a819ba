/** What the package exports as `outboxd/sandbox`, for tests: docs/sandbox.md, "In your own CI". */
export { type Sandbox, type SandboxOptions, startSandbox } from './startSandbox.ts'
