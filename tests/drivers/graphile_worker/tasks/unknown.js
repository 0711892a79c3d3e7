// What the program finds by the file's name.
'use strict';

module.exports = async (payload, { logger, withPgClient }) => {
  const { rows } = await withPgClient(client => client.query('SELECT count(*)::int AS sales FROM sale'));
  logger.info(`known now: ${rows[0].sales}`);
};
