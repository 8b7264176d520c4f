// The crons of wrangler.toml that the code tells apart.

/** When the Worker looks whether receipts are to be carried to D1 again; every other cron is the daily run. */
export const REPLAY_CRON = '*/5 * * * *';
