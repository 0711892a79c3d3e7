"""What `dbt docs generate` has found in the database."""

import json

catalog = json.load(open("target/catalog.json"))
for name, node in sorted((catalog["nodes"] | catalog["sources"]).items()):
    print(name, node["metadata"]["type"], node["metadata"]["comment"])
    for column in sorted(node["columns"].values(), key=lambda column: column["index"]):
        print("   ", column["name"], column["type"], column["comment"])
