SELECT create_distributed_table('tenant', 'id');
SELECT create_distributed_table('orders', 'tenant', colocate_with => 'tenant');
SELECT create_distributed_table('items', 'tenant', colocate_with => 'tenant');
SELECT create_reference_table('country');
SELECT create_distributed_table('userinfo', 'userid');
SELECT create_distributed_table('session', 'userid', colocate_with => 'userinfo');
SELECT create_distributed_table('login_log', 'userid', colocate_with => 'userinfo');
