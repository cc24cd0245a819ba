import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['**/*.test.ts'],
    globalSetup: ['support/globalSetup.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
})
