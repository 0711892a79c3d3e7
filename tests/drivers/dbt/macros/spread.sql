{# Spreads what has just been made, where there is such a thing. #}
{% macro spread(how, column=none) %}
    {%- if execute -%}
        {%- set there = run_query("SELECT to_regproc('create_distributed_table') IS NOT NULL").columns[0][0] -%}
        {%- set spread = there and run_query(
            "SELECT 1 FROM citus_tables WHERE table_name = '" ~ this ~ "'::regclass"
        ).rows | length -%}
        SELECT {% if there and not spread -%}
            {{ how }}('{{ this }}'{% if column %}, '{{ column }}'{% endif %})
        {%- else %}1{% endif %}
    {%- endif -%}
{% endmacro %}
