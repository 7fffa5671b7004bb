package org.verbena.it.lab;

/** How clients and servers of the short form live and end, on verbs over soft iWARP. */
class ClientsAndServersOnSiwTest extends ClientsAndServersOnRxeTest {
    @Override
    LabDevice device() {
        return LabDevice.SIW;
    }
}
