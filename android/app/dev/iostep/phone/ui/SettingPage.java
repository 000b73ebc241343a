package dev.iostep.phone.ui;

import android.text.InputType;
import android.view.LayoutInflater;
import android.view.View;
import android.view.ViewGroup;
import android.widget.AdapterView;
import android.widget.ArrayAdapter;
import android.widget.EditText;
import android.widget.Spinner;
import android.widget.TextView;

import org.bouncycastle.LICENSE;

import java.util.Arrays;

import dev.iostep.phone.R;
import dev.iostep.phone.settings.Parameter;
import dev.iostep.phone.settings.Settings;

/** The tab with every parameter. A row is made of each; nothing is listed twice. */
final class SettingPage implements MainActivity.Page {
    private final MainActivity activity;
    private final View root;
    private final Settings settings;
    private final UploadSection upload;

    SettingPage(MainActivity activity, View root) {
        this.activity = activity;
        this.root = root;
        settings = new Settings(activity);
        upload = new UploadSection(activity, root, settings);
        // Its notice has to go with every copy of it, and is a part of it.
        root.<TextView>findViewById(R.id.licence).setText(LICENSE.licenseText);
        root.findViewById(R.id.reset).setOnClickListener(view -> {
            settings.reset();
            fill();
        });
        fill();
    }

    @Override
    public void onShow() {
        upload.show();
    }

    @Override
    public void onHide() {}

    private void fill() {
        ViewGroup list = root.findViewById(R.id.parameters);
        list.removeAllViews();
        Parameter.Group group = null;
        for (Parameter parameter : Parameter.values()) {
            if (parameter.group == Parameter.Group.UPLOAD) {
                continue;
            }
            if (parameter.group != group) {
                group = parameter.group;
                TextView title = (TextView) LayoutInflater.from(activity)
                        .inflate(R.layout.group_title, list, false);
                title.setText(group.title);
                list.addView(title);
            }
            list.addView(row(list, parameter));
        }
        ViewGroup server = root.findViewById(R.id.server_row);
        server.removeAllViews();
        server.addView(row(server, Parameter.SERVER));
        upload.show();
    }

    private View row(ViewGroup list, Parameter parameter) {
        boolean choice = parameter.kind == Parameter.Kind.CHOICE;
        View row = LayoutInflater.from(activity).inflate(
                choice ? R.layout.choice_row : R.layout.value_row, list, false);
        row.<TextView>findViewById(R.id.name).setText(parameter.title);
        row.setTag(parameter);
        if (choice) {
            choice(row.findViewById(R.id.value), parameter);
        } else {
            value(row.findViewById(R.id.value), parameter);
        }
        return row;
    }

    /** Values are called as the engine's flags call them, in every language. */
    private void choice(Spinner spinner, Parameter parameter) {
        ArrayAdapter<String> values = new ArrayAdapter<>(activity,
                R.layout.chosen, parameter.choices);
        values.setDropDownViewResource(R.layout.to_choose);
        spinner.setAdapter(values);
        spinner.setContentDescription(activity.getString(parameter.title));
        spinner.setSelection(Arrays.asList(parameter.choices).indexOf(settings.text(parameter)));
        spinner.setOnItemSelectedListener(new AdapterView.OnItemSelectedListener() {
            @Override
            public void onItemSelected(AdapterView<?> parent, View view, int at, long id) {
                settings.set(parameter, parameter.choices[at]);
            }

            @Override
            public void onNothingSelected(AdapterView<?> parent) {}
        });
    }

    private void value(EditText field, Parameter parameter) {
        field.setText(settings.text(parameter));
        field.setContentDescription(activity.getString(parameter.title));
        field.setInputType(inputType(parameter.kind));
        field.addTextChangedListener(new AfterText(text -> {
            boolean taken = settings.set(parameter, text);
            field.setError(taken ? null : expectation(parameter));
            if (parameter == Parameter.SERVER) {
                upload.show();
            }
        }));
    }

    private static int inputType(Parameter.Kind kind) {
        switch (kind) {
            case NUMBER:
                return InputType.TYPE_CLASS_NUMBER;
            case ADDRESS:
                return InputType.TYPE_CLASS_TEXT | InputType.TYPE_TEXT_VARIATION_URI;
            default:
                return InputType.TYPE_CLASS_TEXT | InputType.TYPE_TEXT_FLAG_NO_SUGGESTIONS;
        }
    }

    private String expectation(Parameter parameter) {
        switch (parameter.kind) {
            case NUMBER:
                return activity.getString(R.string.expect_number, parameter.least, parameter.most);
            case SIZE:
                return activity.getString(R.string.expect_size);
            default:
                return activity.getString(R.string.expect_server);
        }
    }
}
