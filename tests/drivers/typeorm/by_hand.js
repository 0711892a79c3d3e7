// By its interface, without a transaction: names, keys, indexes that are made while others write, values.
'use strict';
const { TableCheck, TableColumn, TableForeignKey, TableIndex } = require('typeorm');

module.exports = class ByHand1700000000003 {
  name = 'ByHand1700000000003';
  transaction = false;

  async up(runner) {
    await runner.query("UPDATE account SET nick = split_part(mail, '@', 1)");
    await runner.renameColumn('account', 'nick', 'short_name');
    await runner.query("ALTER TABLE account ALTER short_name SET DEFAULT '', ALTER short_name SET NOT NULL");
    await runner.query('CREATE INDEX CONCURRENTLY event_body ON event USING gin (body)');
    await runner.createIndex(
      'account',
      new TableIndex({ name: 'account_name', columnNames: ['tenant_id', 'short_name'] }),
    );
    await runner.dropIndex('account', 'account_name');
    await runner.createCheckConstraint('event', new TableCheck({ name: 'tags', expression: 'cardinality(tags) < 10' }));
    await runner.addColumn('invoice', new TableColumn({ name: 'account', type: 'bigint', isNullable: true }));
    await runner.createForeignKey(
      'invoice',
      new TableForeignKey({
        name: 'invoice_account',
        columnNames: ['tenant_id', 'account'],
        referencedTableName: 'account',
        referencedColumnNames: ['tenant_id', 'id'],
      }),
    );
    await runner.renameTable('invoice', 'bill');
    await runner.renameTable('bill', 'invoice');
    await runner.startTransaction();
    for (const { tenant_id, n } of await runner.query(
      'SELECT tenant_id, count(*) AS n FROM event GROUP BY 1 ORDER BY 1',
    )) {
      await runner.query('UPDATE tenant SET name = name || $1 WHERE id = $2', [` (${n})`, tenant_id]);
    }
    await runner.commitTransaction();
    console.log(await runner.hasColumn('account', 'short_name'), await runner.hasTable('bill'));
  }

  async down(runner) {
    await runner.query('DROP INDEX CONCURRENTLY event_body');
    // What its own way back from an enum's new value forgets.
    await runner.query('ALTER TABLE account ALTER state DROP DEFAULT');
    await runner.changeColumn(
      'account',
      'short_name',
      new TableColumn({ name: 'nick', type: 'text', isNullable: true }),
    );
  }
};
