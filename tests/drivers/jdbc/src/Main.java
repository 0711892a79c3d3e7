package drivers;

public final class Main {
    public static void main(String[] arguments) {
        Statements.add();
        Values.add();
        Connections.add();
        Metadata.add();
        Pools.add();
        Orm.add();
        Suite.run();
    }
}
