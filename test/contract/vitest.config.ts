import { defineConfig } from 'vitest/config'

/** `npm run contract`: the service's own tests, against any address and with nothing else started. */
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['contract.test.ts'],
    reporters: ['verbose'],
    testTimeout: 300_000,
    hookTimeout: 60_000,
  },
})
