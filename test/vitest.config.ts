import { defineConfig } from 'vitest/config'
import ClosingLine from './support/closingLine.ts'

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['**/*.test.ts'],
    globalSetup: ['support/globalSetup.ts'],
    reporters: ['default', new ClosingLine()],
    // Generous, for machines with two busy cores: a condition that comes true ends the wait at once.
    expect: { poll: { timeout: 15_000 } },
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
