{# The schema that a model names, as it is. #}
{% macro generate_schema_name(name, node) %}{{ name or target.schema }}{% endmacro %}
