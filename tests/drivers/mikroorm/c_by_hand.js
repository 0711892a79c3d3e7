// Values, in the transaction of the migration before it.
'use strict';
const { Migration } = require('@mikro-orm/migrations');

exports.c_by_hand = class c_by_hand extends Migration {
  async up() {
    this.addSql("UPDATE account SET nick = split_part(mail, '@', 1)");
    this.addSql('ALTER TABLE account RENAME nick TO short_name');
    this.addSql('ALTER TABLE account RENAME short_name TO nick');
    for (const { tenant_id, n } of await this.execute(
      'SELECT tenant_id, count(*) AS n FROM event GROUP BY 1 ORDER BY 1',
    )) {
      this.addSql(
        this.getKnex()
          .raw('UPDATE tenant SET name = name || ? WHERE id = ?', [` (${n})`, tenant_id])
          .toString(),
      );
    }
  }

  async down() {
    this.addSql('UPDATE account SET nick = NULL');
  }
};
