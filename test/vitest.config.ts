import { defineConfig } from 'vitest/config'
import ClosingLine from './support/closingLine.ts'

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['**/*.test.ts'],
    globalSetup: ['support/globalSetup.ts'],
    reporters: ['default', new ClosingLine()],
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
})
