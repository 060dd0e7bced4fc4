// SPDX-License-Identifier: Apache-2.0
package org.apache.asterix.test.jdbc;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Driver;
import java.sql.DriverManager;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Properties;

/** Runs the driver's own tests against a query service: HOST PORT USER, the password from the environment. */
public final class Runner {

    private static final List<Class<? extends JdbcTester>> TESTERS = List.of(JdbcMetadataTester.class,
            JdbcConnectionTester.class, JdbcStatementTester.class, JdbcPreparedStatementTester.class,
            JdbcResultSetTester.JdbcStatementResultSetTester.class,
            JdbcResultSetTester.JdbcPreparedStatementResultSetTester.class, JdbcStatementParameterTester.class);

    private Runner() {
    }

    public static void main(String[] arguments) throws Exception {
        String host = arguments[0];
        int port = Integer.parseInt(arguments[1]);
        signIn("jdbc:asterixdb://" + host + ":" + port, arguments[2], System.getenv("LIMNOS_PASSWORD"));
        JdbcTester.JdbcTestContext context = JdbcTester.createTestContext(host, port);
        for (Class<? extends JdbcTester> tester : TESTERS) {
            for (Method test : tests(tester)) {
                System.out.println(outcome(tester, test, context));
            }
        }
    }

    private static List<Method> tests(Class<? extends JdbcTester> tester) {
        List<Method> tests = new ArrayList<>();
        for (Method method : tester.getMethods()) {
            if (method.getName().startsWith("test")) {
                tests.add(method);
            }
        }
        tests.sort(Comparator.comparing(Method::getName));
        return tests;
    }

    private static String outcome(Class<? extends JdbcTester> tester, Method test, JdbcTester.JdbcTestContext context)
            throws ReflectiveOperationException {
        Constructor<? extends JdbcTester> constructor = tester.getDeclaredConstructor();
        constructor.setAccessible(true);
        JdbcTester instance = constructor.newInstance();
        instance.setTestContext(context);
        test.setAccessible(true);
        String name = tester.getSimpleName() + "." + test.getName();
        try {
            test.invoke(instance);
            return "passed\t" + name;
        } catch (InvocationTargetException e) {
            return "failed\t" + name + "\t" + String.valueOf(e.getCause()).replaceAll("\\s+", " ");
        }
    }

    /** The tests name no user: the driver that the manager has is replaced by one that adds user and password. */
    private static void signIn(String url, String user, String password) throws Exception {
        Driver driver = DriverManager.getDriver(url);
        DriverManager.deregisterDriver(driver);
        DriverManager.registerDriver((Driver) Proxy.newProxyInstance(Runner.class.getClassLoader(),
                new Class<?>[] { Driver.class }, (proxy, method, values) -> {
                    if (method.getName().equals("equals")) {
                        return proxy == values[0];
                    }
                    if (method.getName().equals("hashCode")) {
                        return System.identityHashCode(proxy);
                    }
                    if (method.getName().equals("connect")) {
                        Properties properties = new Properties();
                        if (values[1] != null) {
                            properties.putAll((Properties) values[1]);
                        }
                        properties.setProperty("user", user);
                        properties.setProperty("password", password);
                        values[1] = properties;
                    }
                    try {
                        return method.invoke(driver, values);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                }));
    }
}
